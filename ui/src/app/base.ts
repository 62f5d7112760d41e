const script = document.querySelector<HTMLScriptElement>("script[type=module]");

/** The path at which the service is mounted, with a slash at its end. The pages lie in `assets` below it. */
export const BASE: string = new URL("..", script?.src ?? document.baseURI).pathname;
