/** Renders a change that a guest will see, like a diff. Pure. */
import type { Difference } from '#api/identity/identity-last-seen.ts';
import type { Painter } from '#lib/terminal/colour.ts';
import { replaceControls } from '#lib/terminal/display-width.ts';

export function differenceText({ what, from, to, why }: Difference, paint: Painter, indent = ''): string {
  const [before, after, reason] = [`  - ${from}`, `  + ${to}`, `  # ${why}`].map(replaceControls);
  return [replaceControls(what), paint('red', before!), paint('green', after!), paint('dim', reason!)]
    .map((line) => indent + line)
    .join('\n');
}
