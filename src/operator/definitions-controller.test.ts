/** Tests when the annotation of uuid admission is written to the definition of VirtualMachines. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UUID_ADMISSION_ANNOTATION as SINCE_ANNOTATION, VM_DEFINITION } from '#api/identity/uuid-admission.ts';
import type { Stored } from '#kube/meta.ts';
import { decideDefinition } from '#operator/definitions-controller.ts';
import type { DesiredObject } from '#operator/desired.ts';
import { definitions, networkAttachmentDefinition } from '#operator/objects/definitions.ts';

const NOW = '2026-01-01T12:00:00Z';
const EARLIER = '2025-01-01T12:00:00Z';
const definitionOf = (name: string): DesiredObject => definitions.find(({ object }) => object.metadata.name === name)!;
const vms = definitionOf(VM_DEFINITION);

function toStored({ object }: DesiredObject, since?: string): Stored {
  const { metadata } = object;
  const annotations = { ...metadata.annotations, ...(since && { [SINCE_ANNOTATION]: since }) };
  const server = { name: metadata.name!, uid: 'u', resourceVersion: '1', creationTimestamp: EARLIER };
  return { ...object, metadata: { ...metadata, annotations, ...server } };
}

const multusMetadata = {
  name: 'network-attachment-definitions.k8s.cni.cncf.io',
  uid: 'u',
  resourceVersion: '1',
  creationTimestamp: EARLIER,
};

interface Case {
  readonly wanted?: DesiredObject;
  readonly present?: Stored;
  readonly admissionSince?: string;
  /** The annotation that is written; undefined if none is. */
  readonly want?: string;
  readonly changes: 0 | 1;
}

const cases: Record<string, Case> = {
  'a new definition is created with the annotation': { admissionSince: NOW, want: NOW, changes: 1 },
  'a definition without the annotation gets it': { present: toStored(vms), admissionSince: NOW, want: NOW, changes: 1 },
  'the annotation is never changed': { present: toStored(vms, EARLIER), admissionSince: NOW, changes: 0 },
  'the annotation is kept if the webhook configuration is gone': { present: toStored(vms, EARLIER), changes: 0 },
  'the annotation is not written without a webhook configuration': { present: toStored(vms), changes: 0 },
  'the kind of NetworkAttachmentDefinitions is created where it is absent': {
    wanted: networkAttachmentDefinition,
    changes: 1,
  },
  'that of Multus is never changed': {
    wanted: networkAttachmentDefinition,
    present: { ...toStored(networkAttachmentDefinition), metadata: multusMetadata, spec: { group: 'k8s.cni.cncf.io' } },
    changes: 0,
  },
  'other definitions do not get the annotation': {
    wanted: definitionOf('kubevirts.kubevirt.io'),
    admissionSince: NOW,
    changes: 1,
  },
};

for (const [name, { wanted = vms, present, admissionSince, want, changes: count }] of Object.entries(cases)) {
  test(name, () => {
    const { changes } = decideDefinition({ wanted, present, admissionSince });
    assert.equal(changes.length, count);
    const [change] = changes;
    const text = JSON.stringify(
      change?.do === 'create' ? change.object.metadata : change?.do === 'patch' ? change.patch : '',
    );
    assert.equal(
      text.includes(SINCE_ANNOTATION) || text.includes(SINCE_ANNOTATION.replace('/', '~1')),
      want !== undefined,
    );
    if (want !== undefined) assert.ok(text.includes(want));
  });
}
