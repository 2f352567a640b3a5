import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPainter, isLiveTerminal } from '#lib/terminal/colour.ts';

const TERMINAL = { isTTY: true };
const cases: Record<string, { stream?: object; env: Record<string, string>; colours: boolean; live: boolean }> = {
  'a terminal': { env: { TERM: 'xterm' }, colours: true, live: true },
  'a pipe': { stream: {}, env: { TERM: 'xterm' }, colours: false, live: false },
  'a dumb terminal': { env: { TERM: 'dumb' }, colours: false, live: false },
  'a terminal with NO_COLOR': { env: { NO_COLOR: '1' }, colours: false, live: true },
  'an empty NO_COLOR': { env: { NO_COLOR: '' }, colours: true, live: true },
  'a pipe with FORCE_COLOR': { stream: {}, env: { FORCE_COLOR: '1' }, colours: true, live: false },
  'FORCE_COLOR and NO_COLOR': { env: { FORCE_COLOR: '1', NO_COLOR: '1' }, colours: true, live: true },
  'FORCE_COLOR=0': { env: { FORCE_COLOR: '0' }, colours: false, live: true },
  'a terminal of a CI system': { env: { CI: 'true' }, colours: true, live: false },
};
for (const [title, { stream = TERMINAL, env, colours, live }] of Object.entries(cases)) {
  test(`decides on colours and live lines for ${title}`, () => {
    assert.equal(createPainter(stream, env)('red', 'x'), colours ? '\u001b[31mx\u001b[39m' : 'x');
    assert.equal(isLiveTerminal(stream, env), live);
  });
}
