// The token. It is kept for this tab until it is closed, is sent in a header, and is never put into an address.

const KEY = 'fleetwright-token';

export function token() {
  return sessionStorage.getItem(KEY);
}

export function keep(text) {
  sessionStorage.setItem(KEY, text);
}

export function forget() {
  sessionStorage.removeItem(KEY);
}
