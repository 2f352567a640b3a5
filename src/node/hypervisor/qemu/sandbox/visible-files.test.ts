import assert from 'node:assert/strict';
import { test } from 'node:test';
import { DomainDir } from '#node/hypervisor/qemu/record/domain-dir.ts';
import { diskFiles, ownFiles } from '#node/hypervisor/qemu/sandbox/visible-files.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';

const dir = new DomainDir('/node/domains', 'a-uid');

test('shows the disks: those that are only read can have other readers', () => {
  const devices = [
    aDisk('data', 2, { path: '/pv/data.img', format: 'raw' }),
    { ...aDisk('media', 3, { path: '/pv/media.iso', format: 'raw' }), readonly: true },
    aDisk('layer', 4, { path: '/node/layer.qcow2', format: 'qcow2', base: '/pv/base.img' }),
  ];
  assert.deepEqual(diskFiles(aDefinition({ devices })), [
    { path: '/pv/data.img', readonly: false, use: 'own' },
    { path: '/pv/media.iso', readonly: true, use: 'shared' },
    { path: '/node/layer.qcow2', readonly: false, use: 'own' },
    { path: '/pv/base.img', readonly: true, use: 'shared' },
  ]);
});

test('a medium of two drives is writable if one of them writes it', () => {
  const source = { path: '/pv/data.img', format: 'raw' } as const;
  const [writing, reading] = [aDisk('a', 2, source), { ...aDisk('b', 3, source), readonly: true }];
  for (const devices of [
    [writing, reading],
    [reading, writing],
  ]) {
    assert.deepEqual(diskFiles(aDefinition({ devices })), [{ path: '/pv/data.img', readonly: false, use: 'own' }]);
  }
});

test('shows the state of the TPM in the working directory, and files of the system only if they are elsewhere', () => {
  const definition = { ...aDefinition(), kernel: { kernelPath: '/node/guest/vmlinuz', arguments: '' } };
  const files = ownFiles(dir, definition, {
    firmware: { code: '/usr/share/OVMF/code.fd', variables: '/usr/share/OVMF/vars.fd' },
    persistent: { tpm: '/pv/state/tpm', nvram: '/pv/state/nvram.fd' },
    binaries: ['qemu-system-x86_64', '/opt/qemu/bin/qemu'],
  });
  assert.deepEqual(files, [
    { path: '/node/domains/a-uid/run', readonly: false },
    { path: '/node/domains/a-uid/key', readonly: true },
    { path: '/pv/state/tpm', readonly: false, as: '/node/domains/a-uid/run/tpm' },
    { path: '/pv/state/nvram.fd', readonly: false },
    { path: '/node/guest/vmlinuz', readonly: true },
    { path: '/opt/qemu/bin/qemu', readonly: true },
  ]);
});
