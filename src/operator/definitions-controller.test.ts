/** When the stamp of uuid admission is written into the definition of VirtualMachines. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UUID_ADMISSION_ANNOTATION as STAMP, VM_DEFINITION } from '#api/uuid-admission.ts';
import type { Stored } from '#kube/meta.ts';
import { decideDefinition } from '#operator/definitions-controller.ts';
import type { Desired } from '#operator/desired.ts';
import { definitions } from '#operator/objects/definitions.ts';

const NOW = '2026-01-01T12:00:00Z';
const EARLIER = '2025-01-01T12:00:00Z';
const named = (name: string): Desired => definitions.find(({ object }) => object.metadata.name === name)!;
const vms = named(VM_DEFINITION);

function stored({ object }: Desired, stamp?: string): Stored {
  const { metadata } = object;
  const annotations = { ...metadata.annotations, ...(stamp && { [STAMP]: stamp }) };
  const server = { name: metadata.name!, uid: 'u', resourceVersion: '1', creationTimestamp: EARLIER };
  return { ...object, metadata: { ...metadata, annotations, ...server } };
}

interface Case {
  readonly wanted?: Desired;
  readonly present?: Stored;
  readonly admissionSince?: string;
  /** The stamp that is written; undefined where none is. */
  readonly want?: string;
  readonly changes: 0 | 1;
}

const cases: Record<string, Case> = {
  'a new definition is created with it': { admissionSince: NOW, want: NOW, changes: 1 },
  'a definition without it gets it': { present: stored(vms), admissionSince: NOW, want: NOW, changes: 1 },
  'it is never moved': { present: stored(vms, EARLIER), admissionSince: NOW, changes: 0 },
  'it stays where the configuration is gone': { present: stored(vms, EARLIER), changes: 0 },
  'it is not made up': { present: stored(vms), changes: 0 },
  'other kinds get none': { wanted: named('kubevirts.kubevirt.io'), admissionSince: NOW, changes: 1 },
};

for (const [name, { wanted = vms, present, admissionSince, want, changes: count }] of Object.entries(cases)) {
  test(name, () => {
    const { changes } = decideDefinition({ wanted, present, admissionSince });
    assert.equal(changes.length, count);
    const [change] = changes;
    const text = JSON.stringify(
      change?.do === 'create' ? change.object.metadata : change?.do === 'patch' ? change.patch : '',
    );
    assert.equal(text.includes(STAMP) || text.includes(STAMP.replace('/', '~1')), want !== undefined);
    if (want !== undefined) assert.ok(text.includes(want));
  });
}
