import assert from 'node:assert/strict';
import { test } from 'node:test';
import { buildPathSuffix, type Forward } from '#subresources/route.ts';
import type { SubresourceVerb } from '#api/verbs/verb.ts';

const cases: Record<string, { verb: SubresourceVerb; query?: string; forward?: Forward; want: string }> = {
  'a console has no suffix': { verb: 'console', want: '' },
  'VNC takes over the session by default': { verb: 'vnc', want: '' },
  'VNC takes over the session with the query of KubeVirt clients': {
    verb: 'vnc',
    query: 'preserveSession=false',
    want: '',
  },
  'VNC can preserve the session': { verb: 'vnc', query: 'preserveSession=true', want: '?preserveSession=true' },
  'booleans have the spellings of Go': { verb: 'vnc', query: 'preserveSession=T', want: '?preserveSession=true' },
  'a screenshot does not move the cursor by default': { verb: 'vnc/screenshot', query: 'moveCursor=false', want: '' },
  'a screenshot can move the cursor': { verb: 'vnc/screenshot', query: 'moveCursor=true', want: '?moveCursor=true' },
  'only options of the verb are passed on': { verb: 'vnc', query: 'moveCursor=true', want: '' },
  'a port forward has port and protocol': {
    verb: 'portforward',
    forward: { port: 53, protocol: 'udp' },
    want: '/53/udp',
  },
};
for (const [name, { verb, query, forward, want }] of Object.entries(cases)) {
  test(name, () => assert.equal(buildPathSuffix(verb, new URLSearchParams(query), forward), want));
}

test('a value that is not a boolean is refused', () => {
  const query = new URLSearchParams('preserveSession=perhaps');
  assert.throws(() => buildPathSuffix('vnc', query, undefined), /preserveSession is "perhaps"; expected true or false/);
});
