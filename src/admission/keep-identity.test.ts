/**
 * Tests that a replacement that omits the identity of a VM keeps it, with a warning, and that patches and applies are
 * unchanged.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { keepIdentity } from '#admission/keep-identity.ts';
import { parseReview } from '#admission/review.ts';
import { aVm } from '#api/validation/testing/valid-objects.ts';
import { applyJsonPatch } from '#kube/patches/json-patch.ts';

type Domain = Readonly<Record<string, unknown>>;

const STORED: Domain = { firmware: { uuid: 'a', serial: 'b', bootloader: { bios: {} } }, machine: { type: 'q35' } };
const BOTH = 'the firmware uuid and serial of VirtualMachine "db" cannot be removed and were kept';
const UUID = 'the firmware uuid of VirtualMachine "db" cannot be removed and was kept';
const SERIAL = 'the firmware serial of VirtualMachine "db" cannot be removed and was kept';
const MACHINE = 'the machine type of VirtualMachine "db" was kept: q35; set it to "" to remove it';
const machine = { type: 'q35' };

function vmOf(domain: unknown) {
  const vm = aVm();
  return { ...vm, metadata: { ...vm.metadata, name: 'db' }, spec: { template: { spec: { domain } } } };
}

interface Case {
  readonly sent: unknown;
  readonly stored?: Domain;
  readonly operation?: string;
  readonly options?: unknown;
  /** The domain after the patch; defaults to the sent one. */
  readonly want?: unknown;
  readonly warnings?: readonly string[];
}

const cases: Record<string, Case> = {
  'a replacement without firmware and machine keeps uuid, serial and machine type': {
    sent: {},
    want: { firmware: { uuid: 'a', serial: 'b' }, machine },
    warnings: [BOTH, MACHINE],
  },
  'a replacement with other firmware keeps uuid and serial only': {
    sent: { firmware: { bootloader: { efi: {} } }, machine },
    want: { firmware: { bootloader: { efi: {} }, uuid: 'a', serial: 'b' }, machine },
    warnings: [BOTH],
  },
  'a replacement with another uuid keeps the serial': {
    sent: { firmware: { uuid: 'c' }, machine },
    want: { firmware: { uuid: 'c', serial: 'b' }, machine },
    warnings: [SERIAL],
  },
  'a replacement with another serial keeps the uuid': {
    sent: { firmware: { serial: 'c' }, machine },
    want: { firmware: { serial: 'c', uuid: 'a' }, machine },
    warnings: [UUID],
  },
  'a replacement with another machine type is unchanged': { sent: { ...STORED, machine: { type: 'pc-q35-7.2' } } },
  'an empty machine type removes it': { sent: { ...STORED, machine: { type: '' } } },
  'a replacement with all fields is unchanged': { sent: STORED },
  'empty values are left to the policy': { sent: { firmware: { uuid: '', serial: null }, machine } },
  'null for firmware is left to the policy': { sent: { firmware: null, machine } },
  'firmware of a wrong type is left to the schema': { sent: { firmware: 'uefi', machine } },
  'a domain of a wrong type is left to the schema': { sent: 'small' },
  'a VM without uuid gets none': { sent: {}, stored: { firmware: { uuid: '', bootloader: {} } } },
  'a VM without firmware gets none': { sent: {}, stored: {} },
  'a patch is unchanged': { sent: {}, options: { kind: 'PatchOptions', apiVersion: 'meta.k8s.io/v1' } },
  'a request without options is unchanged': { sent: {}, options: null },
  'a creation is unchanged': { sent: {}, operation: 'CREATE' },
};

for (const [name, { sent, stored = STORED, want = sent, warnings = [], ...rest }] of Object.entries(cases)) {
  test(name, () => {
    const { operation = 'UPDATE', options = { kind: 'UpdateOptions', apiVersion: 'meta.k8s.io/v1' } } = rest;
    const [object, oldObject] = [vmOf(sent), vmOf(stored)];
    const request = parseReview({ request: { uid: 'u1', operation, options, object, oldObject } });
    assert.ok(request !== undefined);
    const kept = keepIdentity(request);
    assert.deepEqual(applyJsonPatch(object, kept.patch), vmOf(want));
    assert.deepEqual(kept.warnings, warnings);
  });
}
