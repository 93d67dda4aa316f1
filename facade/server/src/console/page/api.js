// Requests to the service. A failure is a `Problem`, whatever went wrong.

import { token } from './session.js';

/** Emits `unauthenticated` when the service does not accept the token. */
export const signals = new EventTarget();

/** How often a request is sent at most that has no effect, or only one effect however often it is sent. */
const ATTEMPTS = 3;
/** The service ends a request after 30 seconds, so one without a response after this many milliseconds is lost. */
const GIVE_UP = 40_000;
/** The longest delay before a repetition, in seconds. A longer one is shown instead. */
const PATIENCE = 5;

/** Why a request failed: the body of the response (RFC 9457), or that there was none. */
export class Problem extends Error {
  constructor(body) {
    super(body.detail ?? body.title);
    Object.assign(this, body);
  }
}

/** The problem of a response that is not a success. */
export async function problemOf(response) {
  const body = await response.json().catch(() => ({}));
  return new Problem({
    status: response.status,
    code: 'unknown',
    title: 'The request failed',
    detail: `the service answered with status ${response.status} and no explanation`,
    traceId: response.headers.get('x-trace-id'),
    ...body,
  });
}

/** Sends a request without repeating it. */
export async function send(method, path, { body, headers = {}, signal } = {}) {
  const sent = { Authorization: `Bearer ${token() ?? ''}`, Accept: 'application/json', ...headers };
  if (body !== undefined) sent['Content-Type'] = 'application/json';
  const options = { method, headers: sent, signal: signal ?? AbortSignal.timeout(GIVE_UP), cache: 'no-store', credentials: 'omit', redirect: 'error', referrerPolicy: 'no-referrer' };
  if (body !== undefined) options.body = typeof body === 'string' ? body : JSON.stringify(body);
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === 'AbortError') throw error;
    throw new Problem({ status: 0, code: 'unreachable', title: 'The service does not answer', detail: 'the connection failed before a response arrived' });
  }
  if (response.ok) return response;
  const problem = await problemOf(response);
  if (problem.status === 401) signals.dispatchEvent(new CustomEvent('unauthenticated'));
  throw problem;
}

/** Sends a request, and repeats it where that is safe and the problem says that it can help. */
async function call(method, path, options = {}) {
  const isSafe = method !== 'POST' || options.headers?.['Idempotency-Key'];
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await send(method, path, options);
      const text = await response.text();
      return { status: response.status, etag: response.headers.get('etag'), body: text ? JSON.parse(text) : null };
    } catch (problem) {
      const delay = problem.code === 'unreachable' ? attempt : problem.retryAfter;
      if (!isSafe || attempt === ATTEMPTS || !delay || delay > PATIENCE) throw problem;
      await new Promise((done) => setTimeout(done, delay * 1000));
    }
  }
}

export const get = (path, options) => call('GET', path, options);
export const put = (path, body, headers) => call('PUT', path, { body, headers });
export const remove = (path) => call('DELETE', path);

/** A POST with an idempotency key: however often it is sent, it is carried out once. */
export const post = (path, body, key = newKey()) => call('POST', path, { body, headers: { 'Idempotency-Key': key } });

/** A random key. `crypto.randomUUID` is not there on pages without TLS. */
export function newKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

/** An address with parameters. Those without a value are left out. */
export function address(path, parameters = {}) {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value) query.append(name, value);
  }
  const text = query.toString();
  return text ? `${path}?${text}` : path;
}

/** A path with ids as parts. */
export function path(strings, ...parts) {
  return String.raw({ raw: strings }, ...parts.map(encodeURIComponent));
}
