/** Quotes foreign text in messages. */

const MAX_TEXT = 200;

/** Returns the text in quotes, with limited length and without control characters. */
export function quoteText(text: string): string {
  return JSON.stringify(text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}...` : text);
}
