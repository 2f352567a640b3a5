import assert from 'node:assert/strict';
import { test } from 'node:test';
import { parseCopy, type ScpCopy } from '#cli/commands/access/scp-locations.ts';

const target = { kind: 'vmi', name: 'db', namespace: undefined, username: 'jdoe' } as const;
const cases: Record<string, { words: [string, string]; want: ScpCopy | string }> = {
  'copies to the guest': {
    words: ['a.bin', 'jdoe@vmi/db:b.bin'],
    want: { target, remotePath: 'b.bin', localPath: 'a.bin', toRemote: true },
  },
  'copies from the guest': {
    words: ['jdoe@vmi/db:/tmp/a:b', '.'],
    want: { target, remotePath: '/tmp/a:b', localPath: '.', toRemote: false },
  },
  'refuses to copy between guests': {
    words: ['vmi/a:x', 'vmi/b:x'],
    want: 'copying from a remote location to another remote location is not supported: "vmi/a:x" to "vmi/b:x"',
  },
  'refuses to copy between local files': {
    words: ['a', 'b'],
    want: 'none of the two provided locations seems to be a remote location: "a" to "b"; expected one like [user@]NAME:PATH',
  },
  'takes a guest without a type as a VM': {
    words: ['jdoe@db:x', '.'],
    want: { target: { ...target, kind: 'vm' }, remotePath: 'x', localPath: '.', toRemote: false },
  },
};
for (const [name, { words, want }] of Object.entries(cases)) {
  test(name, () => {
    if (typeof want === 'string') assert.throws(() => parseCopy(...words), { message: want });
    else assert.deepEqual(parseCopy(...words), want);
  });
}
