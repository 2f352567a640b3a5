import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';
import { withoutBases } from '#node/migration/describe-guest.ts';
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

describe('a message of a source', () => {
  it('is parsed without a change', () => {
    const begin = readFromSource(wire(BEGIN));
    assert.deepEqual(wire(begin), wire(BEGIN));
    const sent = { type: 'sent', standsStillMs: 3 };
    for (const message of [sent, { ...sent, nvram: 'AAAA', sha256: SHA }, { type: 'migrated' }]) {
      assert.deepEqual(readFromSource(message), message);
    }
    const ask = { type: 'outcome', uid: 'm-1', instanceUid: 'u-1' };
    assert.deepEqual(readFromSource(ask), ask);
  });

  it('may have SMBIOS fields, chassis fields and I/O threads', () => {
    const definition = { ...firmwareOf({ smbios: { product: 'a, b' }, chassis: { asset: '7' } }), ioThreads: 3 };
    assert.ok(readFromSource(wire({ ...BEGIN, definition })) !== undefined);
  });

  it('may describe a guest with an overlay', () => {
    const overlay = aDisk('layer', 2, { path: '/layer.qcow2', format: 'qcow2', base: '/base.img' });
    const definition = withoutBases(aDefinition({ devices: [overlay] }));
    const begin = readFromSource(wire({ ...BEGIN, definition }));
    assert.ok(begin?.type === 'begin');
    assert.deepEqual(begin.definition.devices, [{ ...overlay, source: { path: '/layer.qcow2', format: 'qcow2' } }]);
  });

  it('cannot set a prototype', () => {
    const begin = readFromSource(JSON.parse(JSON.stringify(BEGIN).replace('disk-c', '__proto__')));
    assert.ok(begin?.type === 'begin');
    assert.deepEqual(Object.keys(begin.contents), ['__proto__']);
  });

  const bad: Record<string, unknown> = {
    'it is not an object': 5,
    'its type is unknown': { type: 'hello' },
    'its type is an inherited property': { type: 'constructor' },
    'the name of the instance is a path': { ...BEGIN, instance: { ...BEGIN.instance, name: '../x' } },
    'it has no definition': { ...BEGIN, definition: {} },
    'an SMBIOS field contains another option': {
      ...BEGIN,
      definition: firmwareOf({ smbios: { 'product,file': '/etc/passwd' } }),
    },
    'a chassis field is unknown': { ...BEGIN, definition: firmwareOf({ chassis: { file: '/etc/passwd' } }) },
    'the guest has too many I/O threads': { ...BEGIN, definition: aDefinition({ ioThreads: 1e9 }) },
    'the size of a disk is negative': { ...BEGIN, disks: [{ deviceId: 'disk-a', bytes: -1, overlay: false }] },
    'contents are not base64': { ...BEGIN, contents: { a: '<>' } },
    'the directory is relative': { ...BEGIN, place: { bootId: 'b', dir: 'a', identity: '1:2' } },
    'the EFI variables have no checksum': { type: 'sent', standsStillMs: 3, nvram: 'AAAA' },
    'the pause of the guest is negative': { type: 'sent', standsStillMs: -1 },
    'the pause of the guest is missing': { type: 'sent' },
    'a request for the outcome names no instance': { type: 'outcome', uid: 'm-1' },
  };
  for (const [sentence, value] of Object.entries(bad)) {
    it(`is rejected if ${sentence}`, () => assert.equal(readFromSource(value), undefined));
  }
});

describe('a message of a target', () => {
  it('is parsed without a change', () => {
    const ready = { type: 'ready', door: { memory: 'unix:/a', disks: 'b', secret: 'c' } };
    for (const message of [
      ready,
      { type: 'stored' },
      { type: 'arrived', downtimeMs: 40 },
      { type: 'failed', message: 'no' },
    ]) {
      assert.deepEqual(readFromTarget(message), message);
    }
  });
  const bad: Record<string, unknown> = {
    'it is a message of a source': { type: 'migrated' },
    'ready has no endpoint': { type: 'ready' },
    'ready has an incomplete endpoint': { type: 'ready', door: { disks: 'b' } },
  };
  for (const [sentence, value] of Object.entries(bad)) {
    it(`is rejected if ${sentence}`, () => assert.equal(readFromTarget(value), undefined));
  }
});

it('an unknown outcome is rejected', () => {
  assert.deepEqual(readOutcome({ type: 'outcome', is: 'migrated' }), { type: 'outcome', is: 'migrated' });
  assert.equal(readOutcome({ type: 'outcome', is: 'maybe' }), undefined);
});
