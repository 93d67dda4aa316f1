// Showing why a request failed, what to do, and the trace id for the operator.

import { button, el } from './dom.js';

const ADVICE = {
  unreachable: 'Check the network, and that the service runs. Then try again.',
  access_denied: 'Sign in again with a token that is valid.',
  forbidden: 'Ask an administrator of your organization for the role, or for more quota.',
  not_found: 'It was deleted, or your roles do not show it to you.',
  precondition_failed: 'Close this, look at what has changed, and begin again.',
  consent_needed: 'Look at the plan again: it has changed.',
  too_many_requests: 'Wait a moment, then try again.',
  unavailable: 'Wait a moment, then try again.',
  server_error: 'Give the trace id to an operator.',
  not_implemented: 'The cloud of this region cannot do it.',
};

/** The part of a request that a problem is about: `metadata.name: ...`. */
export function fieldOf(problem) {
  return /^([\w.]+): /.exec(problem.detail ?? '')?.[1] ?? null;
}

/** A box with a problem. With `retry` it has a button. */
export function problemBox(problem, { retry, title } = {}) {
  console.debug('request failed', problem.status, problem.code, problem.traceId);
  const advice = ADVICE[problem.code];
  const sentence = (problem.detail ?? '').replace(/^./, (first) => first.toUpperCase());
  return el('div', { class: 'problem', role: 'alert' },
    el('p', { class: 'problem-title' }, title ?? problem.title ?? 'The request failed'),
    sentence && el('p', {}, sentence),
    advice && el('p', {}, advice),
    problem.retryAfter && el('p', {}, `A retry can succeed after ${problem.retryAfter} s.`),
    problem.existingId && el('p', {}, el('a', { href: `#/instances/${encodeURIComponent(problem.existingId)}` }, 'Show the one that has the name')),
    problem.traceId && el('p', { class: 'trace' }, 'Trace id ', el('code', {}, problem.traceId)),
    retry && button('Try again', retry));
}

/** Whatever was thrown, as a problem. A defect of the page is shown too, instead of being lost. */
export function asProblem(error) {
  if (error.code !== undefined && error.status !== undefined) return error;
  console.error(error);
  return { status: 0, code: 'page', title: 'The page failed', detail: `${error.message}: reload the page` };
}

/** Runs an action, and shows its problem in a place, if it has one. Returns whether it succeeded. */
export async function showing(place, action, options) {
  place.replaceChildren();
  try {
    await action();
    return true;
  } catch (error) {
    if (error.status === 401) return false; // the page asks for a token
    place.replaceChildren(problemBox(asProblem(error), options));
    return false;
  }
}
