import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineDomain } from '#node/definition/define-domain.ts';
import { learnedFrom } from '#node/definition/learned-from.ts';
import { anInput, aVmi } from '#node/definition/testing/a-vmi.ts';

test('every device is reported with its kind and place', () => {
  const vmi = aVmi(
    { devices: { disks: [{ name: 'root', disk: { bus: 'scsi' } }], rng: {}, tpm: {} } },
    { volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] },
  );
  const learned = learnedFrom(defineDomain(anInput(vmi)).definition!);
  const pci = (bus: string, slot: string) => ({ type: 'pci', domain: '0x0000', bus, slot, function: '0x0' });
  const drive = { type: 'drive', controller: '0', bus: '0', target: '0', unit: '0' };
  assert.deepEqual(learned[0], {
    id: 'rp0',
    type: 'controller',
    device: 'pcie-root-port',
    managed: false,
    address: pci('0x00', '0x02'),
  });
  assert.deepEqual(learned.slice(8), [
    { id: 'scsi0', type: 'controller', device: 'virtio-scsi', managed: false, address: pci('0x00', '0x06') },
    {
      id: 'nic-default',
      type: 'interface',
      device: 'virtio',
      name: 'default',
      managed: true,
      address: pci('0x01', '0x00'),
    },
    { id: 'disk-root', type: 'disk', device: 'disk', name: 'root', bootOrder: 1, managed: true, address: drive },
    { id: 'tpm0', type: 'tpm', device: 'crb', managed: true },
    { id: 'rng0', type: 'rng', device: 'virtio', managed: true, address: pci('0x00', '0x09') },
    { id: 'balloon0', type: 'balloon', device: 'memballoon', managed: true, address: pci('0x00', '0x08') },
    { id: 'serial0', type: 'console', device: 'serial', managed: true },
  ]);
});
