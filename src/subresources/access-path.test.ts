import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Verb } from '#api/can.ts';
import { belowVerb } from '#subresources/access-path.ts';
import type { Forward } from '#subresources/route.ts';

const cases: Record<string, { verb: Verb; query?: string; forward?: Forward; want: string }> = {
  'a console says nothing more': { verb: 'console', want: '' },
  'a display is taken over': { verb: 'vnc', want: '' },
  'and as clients of KubeVirt ask for it': { verb: 'vnc', query: 'preserveSession=false', want: '' },
  'a session is preserved': { verb: 'vnc', query: 'preserveSession=true', want: '?preserveSession=true' },
  'as Go reads it': { verb: 'vnc', query: 'preserveSession=T', want: '?preserveSession=true' },
  'a cursor that is not asked for is not moved': { verb: 'vnc/screenshot', query: 'moveCursor=false', want: '' },
  'a cursor is moved': { verb: 'vnc/screenshot', query: 'moveCursor=true', want: '?moveCursor=true' },
  'only what the verb knows is passed on': { verb: 'vnc', query: 'moveCursor=true', want: '' },
  'a port with its protocol': { verb: 'portforward', forward: { port: 53, protocol: 'udp' }, want: '/53/udp' },
};
for (const [name, { verb, query, forward, want }] of Object.entries(cases)) {
  test(name, () => assert.equal(belowVerb(verb, new URLSearchParams(query), forward), want));
}

test('what is neither true nor false is refused', () => {
  const query = new URLSearchParams('preserveSession=perhaps');
  assert.throws(() => belowVerb('vnc', query, undefined), /preserveSession is "perhaps"; expected true or false/);
});
