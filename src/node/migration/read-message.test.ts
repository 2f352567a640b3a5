import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aDefinition } from '#node/hypervisor/testing/a-definition.ts';
import { readFromSource, readFromTarget, readOutcome } from '#node/migration/read-message.ts';

const BEGIN = {
  type: 'begin',
  uid: 'm-1',
  instance: { namespace: 'ns', name: 'db', uid: 'u-1' },
  definition: aDefinition(),
  startedAtMs: 1,
  paused: false,
  disks: [{ deviceId: 'disk-a', bytes: 10, overlay: false }],
  contents: { 'disk-c': 'AAAA' },
  place: { bootId: 'b', dir: '/a', identity: '1:2' },
};
const SHA = 'a'.repeat(64);
const wire = (value: unknown): unknown => JSON.parse(JSON.stringify(value));

const firmwareOf = (more: object) => {
  const definition = aDefinition();
  return { ...definition, firmware: { ...definition.firmware, ...more } };
};

describe('what a source says', () => {
  it('is read as it was said', () => {
    const begin = readFromSource(wire(BEGIN));
    assert.deepEqual(wire(begin), wire(BEGIN));
    const sent = { type: 'sent', standsStillMs: 3 };
    for (const word of [sent, { ...sent, nvram: 'AAAA', sha256: SHA }, { type: 'migrated' }]) {
      assert.deepEqual(readFromSource(word), word);
    }
    const ask = { type: 'outcome', uid: 'm-1', instanceUid: 'u-1' };
    assert.deepEqual(readFromSource(ask), ask);
  });

  it('has what firmware says, and threads', () => {
    const definition = { ...firmwareOf({ smbios: { product: 'a, b' }, chassis: { asset: '7' } }), ioThreads: 3 };
    assert.ok(readFromSource(wire({ ...BEGIN, definition })) !== undefined);
  });

  it('does not reach the prototype of anything', () => {
    const begin = readFromSource(JSON.parse(JSON.stringify(BEGIN).replace('disk-c', '__proto__')));
    assert.ok(begin?.type === 'begin');
    assert.deepEqual(Object.keys(begin.contents), ['__proto__']);
  });

  const bad: Record<string, unknown> = {
    'no object': 5,
    'an unknown word': { type: 'hello' },
    'an inherited word': { type: 'constructor' },
    'an instance with a path': { ...BEGIN, instance: { ...BEGIN.instance, name: '../x' } },
    'no definition': { ...BEGIN, definition: {} },
    'a guest whose maker is an option of its own': {
      ...BEGIN,
      definition: firmwareOf({ smbios: { 'product,file': '/etc/passwd' } }),
    },
    'a guest with a case of another word': { ...BEGIN, definition: firmwareOf({ chassis: { file: '/etc/passwd' } }) },
    'a guest with more threads than anybody has': { ...BEGIN, definition: aDefinition({ ioThreads: 1e9 }) },
    'a disk of no size': { ...BEGIN, disks: [{ deviceId: 'disk-a', bytes: -1, overlay: false }] },
    'contents that are no base64': { ...BEGIN, contents: { a: '<>' } },
    'a relative place': { ...BEGIN, place: { bootId: 'b', dir: 'a', identity: '1:2' } },
    'variables without their sum': { type: 'sent', standsStillMs: 3, nvram: 'AAAA' },
    'what was sent before its guest stood still': { type: 'sent', standsStillMs: -1 },
    'what was sent, but not how long the guest has stood still': { type: 'sent' },
    'a question about nobody': { type: 'outcome', uid: 'm-1' },
  };
  for (const [what, value] of Object.entries(bad)) {
    it(`is nothing where it is ${what}`, () => assert.equal(readFromSource(value), undefined));
  }
});

describe('what a target says', () => {
  it('is read as it was said', () => {
    const ready = { type: 'ready', door: { memory: 'unix:/a', disks: 'b', secret: 'c' } };
    for (const word of [
      ready,
      { type: 'stored' },
      { type: 'arrived', downtimeMs: 40 },
      { type: 'failed', message: 'no' },
    ]) {
      assert.deepEqual(readFromTarget(word), word);
    }
  });
  const bad: Record<string, unknown> = {
    'a word of sources': { type: 'migrated' },
    'ready without a door': { type: 'ready' },
    'ready with half a door': { type: 'ready', door: { disks: 'b' } },
  };
  for (const [what, value] of Object.entries(bad)) {
    it(`is nothing where it is ${what}`, () => assert.equal(readFromTarget(value), undefined));
  }
});

it('an outcome is one of three', () => {
  assert.deepEqual(readOutcome({ type: 'outcome', is: 'migrated' }), { type: 'outcome', is: 'migrated' });
  assert.equal(readOutcome({ type: 'outcome', is: 'maybe' }), undefined);
});
