import { Component, type ComponentChildren } from "preact";

interface State {
  error: Error | null;
}

/** Keeps a mistake of one page from taking the frame with it. */
export class Boundary extends Component<{ children: ComponentChildren }, State> {
  override state: State = { error: null };

  override componentDidCatch(error: Error): void {
    this.setState({ error });
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    return (
      <section class="problem" role="alert">
        <h2>This page met an error of its own</h2>
        <p>{error.message}</p>
        <button type="button" onClick={() => this.setState({ error: null })}>
          Try again
        </button>
      </section>
    );
  }
}
