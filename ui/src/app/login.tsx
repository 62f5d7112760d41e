import { useSignal } from "@preact/signals";
import { adviceFor, Problem } from "../api/problem";
import { login } from "./session";

export function Login() {
  const token = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const busy = useSignal(false);

  async function enter(event: Event): Promise<void> {
    event.preventDefault();
    busy.value = true;
    try {
      await login(token.value.trim());
    } catch (error) {
      problem.value = error instanceof Problem ? error : new Problem(0, {});
    }
    busy.value = false;
  }

  return (
    <main class="login">
      <form onSubmit={enter}>
        <h1>rota</h1>
        <p>
          Log in with a token. <code>rota serve</code> prints a link with one when it starts, and{" "}
          <code>rota token new NAME --role operator</code> makes others.
        </p>
        <label for="token">Token</label>
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          autofocus
          required
          value={token.value}
          aria-invalid={problem.value !== null}
          aria-describedby="login-problem"
          onInput={(event) => (token.value = event.currentTarget.value)}
        />
        <button type="submit" class="primary" disabled={busy.value}>
          Log in
        </button>
        <p id="login-problem" class="wrong" role="alert">
          {problem.value && `${problem.value.message}. ${problem.value.status === 401 ? "" : adviceFor(problem.value).replaceAll("`", "")}`}
        </p>
      </form>
    </main>
  );
}
