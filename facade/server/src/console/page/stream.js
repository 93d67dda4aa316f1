// A watch: server-sent events through fetch, because EventSource cannot send the token. It reconnects until it is closed.

import { address, send } from './api.js';

/** A watch sends its position every 15 seconds. Without anything for this long, the connection is dead. */
const SILENCE = 40_000;
/** A tab that nobody sees closes its connection after this long: a browser opens few to one host, and a service permits few watches. */
const UNSEEN = 60_000;
/** Delays between attempts, in milliseconds. The last one is repeated. */
const DELAYS = [500, 1000, 2000, 4000, 8000, 15_000];

/** Splits a stream into events: name, id and data. */
export async function* parse(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  let event = {};
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split(/\r?\n/);
    rest = lines.pop();
    for (const line of lines) {
      if (line === '') {
        if (event.data !== undefined || event.id !== undefined) yield { name: 'message', ...event };
        event = {};
        continue;
      }
      const [, key, text] = /^([^:]*)(?:: ?(.*))?$/.exec(line);
      if (key === 'event') event.name = text ?? '';
      if (key === 'id') event.id = text ?? '';
      if (key === 'data') event.data = event.data === undefined ? (text ?? '') : `${event.data}\n${text ?? ''}`;
    }
  }
}

/**
 * Emits `event` for each event, `link` when the connection changes, and `lost` when the changes since the last position are no longer
 * kept: then everything has to be read again.
 */
export class Watch extends EventTarget {
  #position;
  #last = null;
  #attempt = 0;
  #isClosed = false;
  #isPaused = false;
  #unseen = null;
  #connection = null;
  #wake = () => {};

  constructor(position) {
    super();
    this.#position = position;
    addEventListener('online', this.retry);
    document.addEventListener('visibilitychange', this.#look);
    this.#look();
    this.#run();
  }

  close() {
    this.#isClosed = true;
    removeEventListener('online', this.retry);
    document.removeEventListener('visibilitychange', this.#look);
    clearTimeout(this.#unseen);
    this.#connection?.abort();
    this.#wake();
  }

  /** Ends the present delay. */
  retry = () => this.#wake();

  /** Pauses while nobody sees the tab, and resumes when it is seen. */
  #look = () => {
    clearTimeout(this.#unseen);
    if (document.hidden) {
      this.#unseen = setTimeout(() => {
        this.#isPaused = true;
        this.#connection?.abort();
        this.#wake();
      }, UNSEEN);
    } else if (this.#isPaused) {
      this.#isPaused = false;
      this.#wake();
    }
  };

  async #run() {
    while (!this.#isClosed) {
      if (this.#isPaused) {
        this.#attempt = 0;
        this.#emit('link', { state: 'paused' });
        await new Promise((done) => {
          this.#wake = done;
        });
        continue;
      }
      this.#emit('link', { state: this.#attempt === 0 ? 'connecting' : 'reconnecting' });
      let problem = null;
      try {
        await this.#connect();
      } catch (caught) {
        problem = caught;
      }
      if (this.#isClosed || problem?.status === 401) return;
      if (this.#isPaused) continue;
      if (problem?.status === 410 || problem?.status === 400) {
        this.#emit('lost', {});
        return;
      }
      if (problem?.status === 403) {
        this.#emit('link', { state: 'refused', problem });
        return;
      }
      const usual = DELAYS[Math.min(this.#attempt, DELAYS.length - 1)];
      // Different tabs do not come back at the same moment.
      const delay = Math.max(usual * (0.75 + Math.random() / 2), (problem?.retryAfter ?? 0) * 1000);
      this.#attempt += 1;
      this.#emit('link', { state: 'disconnected', delay, problem });
      await new Promise((done) => {
        this.#wake = done;
        setTimeout(done, delay);
      });
    }
  }

  async #connect() {
    this.#connection = new AbortController();
    const { signal } = this.#connection;
    const headers = { Accept: 'text/event-stream' };
    if (this.#last !== null) headers['Last-Event-ID'] = this.#last;
    const from = this.#last === null ? this.#position : null;
    let timer = setTimeout(() => this.#connection.abort(), SILENCE);
    try {
      const response = await send('GET', address('/api/v2/watch/instances', { from }), { headers, signal });
      this.#attempt = 0;
      this.#emit('link', { state: 'live' });
      for await (const event of parse(response.body)) {
        clearTimeout(timer);
        timer = setTimeout(() => this.#connection.abort(), SILENCE);
        if (this.#isClosed) return;
        if (event.id) this.#last = event.id;
        this.#emit('event', { name: event.name, data: JSON.parse(event.data ?? '{}') });
      }
    } finally {
      clearTimeout(timer);
    }
  }

  #emit(name, detail) {
    if (!this.#isClosed) this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
