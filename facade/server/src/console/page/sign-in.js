// Signing in: a token is tried before it is kept.

import { send } from './api.js';
import { el, field, onSubmit } from './dom.js';
import { problemBox, asProblem } from './problem.js';
import { keep } from './session.js';

export function signInView(reason, enter) {
  const input = el('input', { type: 'password', name: 'token', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', required: true });
  const token = field('Token', input, 'It is kept in this tab until the tab is closed or you sign out.');
  const submit = el('button', { type: 'submit', class: 'primary' }, 'Sign in');
  const problems = el('div', {});
  const form = el('form', { class: 'card', novalidate: true }, token.node, problems, submit);
  onSubmit(form, submit, signIn);

  async function signIn() {
    const text = input.value.trim();
    token.showError(null);
    problems.replaceChildren();
    const wrong = refusal(text);
    if (wrong) {
      token.showError(wrong);
      input.focus();
      return;
    }
    try {
      await send('GET', '/api/v2/caller', { headers: { Authorization: `Bearer ${text}` } });
    } catch (error) {
      if (error.status === 401) {
        token.showError(`The service does not accept this token: it is wrong or has expired. Trace id ${error.traceId ?? 'unknown'}.`);
        input.select();
      } else {
        problems.replaceChildren(problemBox(asProblem(error)));
      }
      return;
    }
    keep(text);
    await enter();
  }

  const node = el('section', { class: 'sign-in' },
    el('h1', { tabindex: '-1' }, 'Sign in to fleetwright'),
    reason && el('p', { class: 'notice' }, reason),
    form,
    el('p', { class: 'hint' }, 'The sample prints its token when it starts. Elsewhere, ask your operator. ', el('a', { href: '/docs' }, 'All operations')));
  return { node, title: 'Sign in', focus: () => input.focus() };
}

/** Why a text cannot be a token. Headers take visible ASCII only. */
function refusal(text) {
  if (text === '') return 'Paste a token.';
  if (!/^[\x21-\x7e]+$/.test(text)) return 'A token has no spaces and no letters beyond ASCII: copy it again.';
  return null;
}
