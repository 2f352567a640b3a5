import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { FileFormatError } from '#formats/findings.ts';
import { readLibvirt } from '#formats/libvirt/read-libvirt.ts';
import { writeLibvirt } from '#formats/libvirt/write-libvirt.ts';
import type { MachineDescription } from '#formats/machine.ts';
import { readOvf } from '#formats/ovf/read-ovf.ts';
import { writeOvf } from '#formats/ovf/write-ovf.ts';
import { libvirtDomain } from '#formats/testing/libvirt-domain.ts';
import { ovirtOvf } from '#formats/testing/ovirt-ovf.ts';
import { PLAIN_OVF } from '#formats/testing/plain-ovf.ts';
import { toManifests } from '#formats/vm/to-manifests.ts';
import { FULL_RUN } from '#test/support/full-run.ts';

const WORDS = [
  '',
  'constructor',
  '__proto__',
  'toString',
  '-1',
  '0',
  '1',
  '1e99',
  '9'.repeat(20),
  '../x',
  '/x',
  '{',
  'type=pci',
  'true',
  'é',
  '<a/>',
  'x'.repeat(300),
];

const files: Record<string, { text: string; read: (text: string) => MachineDescription }> = {
  'an OVF of oVirt': { text: ovirtOvf(), read: readOvf },
  'an OVF of another product': { text: PLAIN_OVF, read: readOvf },
  'a libvirt domain': { text: libvirtDomain(), read: readLibvirt },
};

/** Returns false if the file is refused with a FileFormatError; any other error fails the test. */
function isAccepted(use: () => unknown): boolean {
  try {
    use();
    return true;
  } catch (error) {
    assert.ok(error instanceof FileFormatError, error instanceof Error ? error.stack : String(error));
    return false;
  }
}

for (const [name, { text, read }] of Object.entries(files)) {
  test(`${name} with arbitrary values is either refused or can be exported and imported`, () => {
    const positions = [...text.matchAll(/(?<=["'>])[^<>"']+(?=["'<])/g)];
    assert.ok(positions.length > 50);
    const change = fc.tuple(fc.nat(positions.length - 1), fc.constantFrom(...WORDS));
    const changes = fc.uniqueArray(change, { minLength: 1, maxLength: 3, selector: ([position]) => position });
    fc.assert(
      fc.property(changes, (list) => {
        let changed = text;
        for (const [i, word] of list.sort(([a], [b]) => b - a)) {
          const { index = 0, 0: old = '' } = positions[i] ?? {};
          changed = changed.slice(0, index) + word + changed.slice(index + old.length);
        }
        isAccepted(() => {
          const machine = read(changed);
          // An OVF cannot contain the absolute paths of a domain.
          const portable = { ...machine, disks: machine.disks.map((disk) => ({ ...disk, file: undefined })) };
          assert.equal(
            isAccepted(() => readOvf(writeOvf(portable))),
            true,
          );
          assert.equal(
            isAccepted(() => readLibvirt(writeLibvirt({ ...machine, machineType: 'pc' }).xml)),
            true,
          );
          toManifests(machine, {
            name: 'a',
            namespace: 'b',
            claimNames: new Map(machine.disks.map((disk) => [disk.name, disk.name])),
          });
        });
      }),
      { numRuns: FULL_RUN ? 60 : 25 },
    );
  });
}
