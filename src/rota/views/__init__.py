"""Runs, tasks, schedules, flows, workers, marks and decisions as JSON: one module per noun.

Every surface (the command line, HTTP, an admin) shows the same fields because it takes them from here. A view reads a
store and returns values. It knows no app, no terminal and no request. `values.record` turns a view into JSON.
"""
