import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { canCheck, parseCniConfig } from '#node/network/linux/cni/cni-config.ts';
import { readHostCniConfig } from '#node/network/linux/cni/host-cni-config.ts';

const LIST = { cniVersion: '0.4.0', name: 'lan', plugins: [{ type: 'bridge', ipam: { type: 'static' } }] };

const refused: Record<string, { value: unknown; message: RegExp }> = {
  'text that is not JSON': { value: '{', message: /it is not a JSON object/ },
  'a list instead of an object': { value: [], message: /it is not a JSON object/ },
  'a network without a name': { value: { ...LIST, name: undefined }, message: /name is undefined; expected letters/ },
  'a name that is a path': { value: { ...LIST, name: '../x' }, message: /name is "\.\.\/x"/ },
  'a version that is not known': {
    value: { ...LIST, cniVersion: '0.2.0' },
    message: /cniVersion is "0\.2\.0"; expected one of 0\.3\.0,/,
  },
  'a list without plugins': { value: { ...LIST, plugins: [] }, message: /plugins must be a list of 1 to 16 plugins/ },
  'a plugin with a path': {
    value: { ...LIST, plugins: [{ type: '/bin/sh' }] },
    message: /plugins\[0\]\.type is "\/bin\/sh"; expected the name of a plugin, without a path/,
  },
  'a plugin that is a directory': {
    value: { ...LIST, plugins: [{ type: '..' }] },
    message: /plugins\[0\]\.type is "\.\."/,
  },
  'an IPAM plugin with a path': {
    value: { ...LIST, plugins: [{ type: 'bridge', ipam: { type: '../sh' } }] },
    message: /plugins\[0\]\.ipam\.type is "\.\.\/sh"/,
  },
  'a large text': { value: { ...LIST, padding: 'x'.repeat(70_000) }, message: /more than 65536 bytes/ },
  'deep values': { value: `${'['.repeat(40)}${']'.repeat(40)}`, message: /nested deeper than 32/ },
};
for (const [name, { value, message }] of Object.entries(refused)) {
  test(`a CNI configuration must not be ${name}`, () => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    assert.throws(() => parseCniConfig(text, 'of a test'), { name: 'CniError', permanent: true, message });
  });
}

test('a CNI configuration may be a list of any version with lists, or a single plugin', () => {
  assert.deepEqual(parseCniConfig(JSON.stringify(LIST), 'of a test'), LIST);
  const single = { cniVersion: '0.3.1', name: 'one', type: 'macvlan', master: 'eth0' };
  assert.deepEqual(parseCniConfig(JSON.stringify(single), 'of a test'), {
    cniVersion: '0.3.1',
    name: 'one',
    plugins: [single],
  });
  assert.equal(parseCniConfig(JSON.stringify({ ...LIST, cniVersion: '1.1.0' }), 'of a test').cniVersion, '1.0.0');
});

test('plugins are checked unless their version or configuration excludes it', () => {
  const check = (fields: object) => canCheck(parseCniConfig(JSON.stringify({ ...LIST, ...fields }), 'of a test'));
  assert.deepEqual([{}, { cniVersion: '0.3.1' }, { disableCheck: true }, { cniVersion: '1.0.0' }].map(check), [
    true,
    false,
    false,
    true,
  ]);
});

test('the configuration of the host is the first file by name', async (t) => {
  const directory = await mkdtemp(join(tmpdir(), 'selfsame-cni-'));
  t.after(() => rm(directory, { recursive: true }));
  assert.equal(await readHostCniConfig(join(directory, 'none')), undefined);
  assert.equal(await readHostCniConfig(directory), undefined);
  await writeFile(join(directory, '20-b.conflist'), JSON.stringify({ ...LIST, name: 'second' }));
  await writeFile(join(directory, '10-a.conf'), JSON.stringify({ name: 'first', type: 'ptp' }));
  await writeFile(join(directory, '00-readme.txt'), 'not a configuration');
  assert.equal((await readHostCniConfig(directory))?.name, 'first');
  await writeFile(join(directory, '05-bad.json'), '{}');
  await assert.rejects(readHostCniConfig(directory), /05-bad\.json: name is undefined/);
});
