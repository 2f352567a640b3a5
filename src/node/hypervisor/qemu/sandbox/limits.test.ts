import assert from 'node:assert/strict';
import { test } from 'node:test';
import { sandboxLimits } from '#node/hypervisor/qemu/sandbox/limits.ts';
import { aDefinition, aDisk } from '#node/hypervisor/testing/a-definition.ts';

const MIB = 2 ** 20;
const aGuest = (memoryMib: number, cores = 1) =>
  aDefinition({ memoryKib: memoryMib * 1024, cpu: { model: 'max', sockets: 1, cores, threads: 1 }, devices: [] });

test('limits the memory to that of the guest and what QEMU needs beside it', () => {
  const { memoryBytes } = sandboxLimits(aGuest(1024), 'kvm');
  assert.equal(memoryBytes, (1024 + 16 + 512 + 16) * MIB);
});

test('adds the buffer for translated code if the guest is emulated', () => {
  const [kvm, tcg] = (['kvm', 'tcg'] as const).map((accelerator) => sandboxLimits(aGuest(1024), accelerator));
  assert.equal(tcg!.memoryBytes - kvm!.memoryBytes, 1024 * MIB);
});

test('adds memory for each disk', () => {
  const plain = aGuest(1024);
  const withDisk = { ...plain, devices: [aDisk('data', 2, { path: '/data.img', format: 'raw' })] };
  const added = sandboxLimits(withDisk, 'kvm').memoryBytes - sandboxLimits(plain, 'kvm').memoryBytes;
  assert.equal(added, 32 * MIB);
});

test('gives processor time in proportion to the processors', () => {
  assert.deepEqual(
    [1, 4, 512].map((cores) => sandboxLimits(aGuest(1024, cores), 'kvm').cpuShares),
    [1024, 4096, 262_144],
  );
});
