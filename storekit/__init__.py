"""The kit for authors of stores: contract, model, comparison, walk, real servers and faults. Not part of the wheel."""
