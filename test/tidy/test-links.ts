/** Checks links of documents to tests: `[text](path "title of a test")`. */
import { posix } from 'node:path';

const LINK = /\[[^\]]+\]\(([^\s)]+)(?: "([^"]*)")?\)/g;

/** Returns what is wrong with the links in a text: a file that does not exist, or lacks the test that the link names. */
export function brokenLinks(text: string, folder: string, texts: ReadonlyMap<string, string>): string[] {
  return [...text.matchAll(LINK)].flatMap(([, target = '', title]) => {
    const path = posix.normalize(posix.join(folder, target));
    const found = texts.get(path);
    if (found === undefined) return [`links to ${path}, which does not exist`];
    return title === undefined || found.includes(title)
      ? []
      : [`names the test "${title}", which ${path} does not have`];
  });
}
