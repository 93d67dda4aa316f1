// Tags as lines of text: `name=value`.

export const tagLines = (tags) => (tags ?? []).map((tag) => `${tag.name}=${tag.value}`).join('\n');

/** Parses lines, or throws with the line that has no `=`. */
export function parseTags(text) {
  return text.split('\n').map((line) => line.trim()).filter(Boolean).map((line) => {
    const at = line.indexOf('=');
    if (at < 1) throw new SyntaxError(`“${line}” has to be name=value`);
    return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
  });
}
