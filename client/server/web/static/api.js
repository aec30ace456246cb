// Requests to this server, and its streams of events. There is no other server.

const BASE = "/api/v1";
const PAUSE_MS = 20;

export class ApiError extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.error = error;
  }
}

async function send(method, path, body, signal) {
  const options = { method, signal, headers: {}, credentials: "same-origin" };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  const answer = await fetch(BASE + path, options);
  if (!answer.ok) {
    let error = { code: "", message: `the server answered with status ${answer.status}` };
    try { error = (await answer.json()).error ?? error; } catch { /* not JSON: the status says it */ }
    throw new ApiError(answer.status, error);
  }
  return answer;
}

export async function get(path) {
  return (await send("GET", path)).json();
}

export async function post(path, body) {
  return (await send("POST", path, body)).json();
}

// Reads a stream of events until it ends or the signal is aborted: onEvent(name, data).
export async function stream(method, path, body, onEvent, signal) {
  const answer = await send(method, path, body, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const text of events) {
      const lines = text.split("\n");
      const name = lines.find((line) => line.startsWith("event: "))?.slice(7);
      const data = lines.find((line) => line.startsWith("data: "))?.slice(6);
      if (name && data) onEvent(name, JSON.parse(data));
    }
    // a fast stream has its next part already: without this pause the page would not be drawn, nor answer keys
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

// Reads a stream of facts for as long as a page is shown; after a lost connection it asks again.
export function watch(path, onEvent, onError) {
  const stop = new AbortController();
  const lost = document.getElementById("lost");
  (async () => {
    let pause = 500;
    while (!stop.signal.aborted) {
      try {
        await stream("GET", path, undefined, (name, data) => {
          lost.hidden = true;
          pause = 500;
          if (name === "failure") onError(data);
          else onEvent(name, data);
        }, stop.signal);
        return;
      } catch (error) {
        if (stop.signal.aborted) return;
        // a refusal is final; only a connection is tried again
        if (error instanceof ApiError && error.status < 500 && error.status !== 429) { onError(error); return; }
        lost.hidden = false;
        await new Promise((resolve) => setTimeout(resolve, pause));
        pause = Math.min(pause * 2, 8000);
      }
    }
  })();
  return () => { lost.hidden = true; stop.abort(); };
}
