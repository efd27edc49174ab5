// A stream of frames that survives interruptions: it reconnects with the position of the last frame.

import { streamUrl } from "./base";

export type Frame = {
  seq?: number;
  ts?: string;
  run?: string;
  type: string;
  data?: unknown;
  cursor?: string;
  [key: string]: unknown;
};

export type StreamState = "connecting" | "open" | "lost" | "signed-out" | "gone";

type StreamOptions = {
  /** Returns the address with the position after which frames are wanted. */
  address: () => string;
  onFrames: (frames: Frame[]) => void;
  onState: (state: StreamState) => void;
};

/** Close codes after which a new connection would end the same way. */
const FINAL: Record<number, StreamState> = { 4001: "signed-out", 4004: "gone" };
const FIRST_DELAY = 250;
const LONGEST_DELAY = 10_000;

/** Opens a stream. Returns the function that closes it. */
export function openStream({ address, onFrames, onState }: StreamOptions): () => void {
  let socket: WebSocket | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let delay = FIRST_DELAY;
  let closed = false;
  let waiting: Frame[] = [];
  let scheduled = false;

  // Many frames can arrive before the next paint; they are applied together.
  const deliver = () => {
    scheduled = false;
    const frames = waiting;
    waiting = [];
    if (!closed && frames.length > 0) onFrames(frames);
  };
  const receive = (event: MessageEvent) => {
    if (typeof event.data !== "string") return;
    waiting.push(JSON.parse(event.data) as Frame);
    if (!scheduled) {
      scheduled = true;
      // A page in the background has no paints.
      if (document.hidden) setTimeout(deliver, 100);
      else requestAnimationFrame(deliver);
    }
  };
  const connect = () => {
    onState("connecting");
    deliver();
    socket = new WebSocket(streamUrl(address()));
    socket.onopen = () => {
      delay = FIRST_DELAY;
      onState("open");
    };
    socket.onmessage = receive;
    socket.onclose = (event) => {
      if (closed) return;
      const final = FINAL[event.code];
      onState(final ?? "lost");
      if (final) return;
      timer = setTimeout(connect, delay * (0.75 + Math.random() / 2));
      delay = Math.min(delay * 2, LONGEST_DELAY);
    };
  };
  const online = () => {
    if (socket?.readyState === WebSocket.OPEN || socket?.readyState === WebSocket.CONNECTING) return;
    clearTimeout(timer);
    connect();
  };
  window.addEventListener("online", online);
  connect();
  return () => {
    closed = true;
    clearTimeout(timer);
    window.removeEventListener("online", online);
    socket?.close();
  };
}
