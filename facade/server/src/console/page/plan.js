// A plan: what an update would change, and how.

import { el } from './dom.js';
import { method, spaced } from './words.js';

export function planList(plan) {
  if (plan.changes.length === 0) return el('p', {}, 'The machine stays as it is.');
  return el('ul', { class: 'plan' }, plan.changes.map((change) => el('li', {}, el('strong', {}, spaced(change.field)), `: ${method(change.method)}`)));
}
