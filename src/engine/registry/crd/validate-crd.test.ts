import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { aCrd, aVersion, gadgetSchema } from '#engine/registry/crd/testing/custom-resource-definition.ts';
import { crdStatus } from '#engine/registry/crd/crd-status.ts';
import type { Crd, CrdSpec, CrdVersion } from '#engine/registry/crd/definition.ts';
import { prepareCrd } from '#engine/registry/crd/prepare-crd.ts';
import { crdWarnings, validateCrd, validateCrdUpdate } from '#engine/registry/crd/validate-crd.ts';
import type { FieldError } from '#kube/field-error.ts';
import type { KubeObject } from '#kube/meta.ts';

const shown = (errors: readonly FieldError[]) => errors.map(({ field, message }) => `${field}: ${message}`);

interface Case {
  spec?: Partial<CrdSpec>;
  version?: Partial<CrdVersion>;
  crd?: Partial<Crd>;
  /** The beginning of each expected error. */
  want: string[];
}

const cases: Record<string, Case> = {
  'accepts a valid definition': { want: [] },
  'requires the name <plural>.<group>': {
    crd: { metadata: { name: 'wrong.golden.local' } },
    want: ['metadata.name: Invalid value: "wrong.golden.local": must be spec.names.plural+"."+spec.group'],
  },
  'requires a group with a dot': {
    spec: { group: 'golden' },
    crd: { metadata: { name: 'gadgets.golden' } },
    want: ['spec.group: Invalid value: "golden": should be a domain with at least one dot'],
  },
  'rejects unknown scopes': {
    spec: { scope: 'Galaxy' },
    want: ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
  },
  'requires one storage version': {
    spec: { versions: [aVersion(), aVersion({ name: 'v2' })] },
    want: ['spec.versions: Invalid value: '],
  },
  'requires unique and valid version names': {
    spec: { versions: [aVersion(), aVersion({ storage: false }), aVersion({ name: '1', storage: false })] },
    want: ['spec.versions[2].name: Invalid value: "1": a DNS-1035 label must', 'spec.versions: Invalid value: '],
  },
  'requires names that are labels': {
    spec: {
      names: {
        plural: 'gadgets',
        kind: 'Bad_Kind',
        singular: 'Bad',
        listKind: 'Bad_Kind',
        shortNames: ['ok', 'A'],
        categories: ['B'],
      },
    },
    want: [
      'spec.names.singular: Invalid value: "Bad": a DNS-1035 label must',
      'spec.names.kind: Invalid value: "Bad_Kind": may have mixed case, but should otherwise match: a DNS-1035 label must',
      'spec.names.listKind: Invalid value: "Bad_Kind": may have mixed case',
      'spec.names.shortNames[1]: Invalid value: "A": a DNS-1035 label must',
      'spec.names.listKind: Invalid value: "Bad_Kind": kind and listKind may not be the same',
      'spec.names.categories[0]: Invalid value: "B": a DNS-1035 label must',
    ],
  },
  'requires a url or a service and a supported review version': {
    spec: {
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig: { caBundle: 'YWI=' }, conversionReviewVersions: ['v2', 'v2', 'V1'] },
      },
    },
    want: [
      'spec.conversion.webhookClientConfig: Required value: exactly one of url or service is required',
      'spec.conversion.webhookClientConfig.caBundle: Invalid value: []byte{0x61, 0x62}: unable to load root certificates: unable to parse bytes as PEM block',
      'spec.conversion.conversionReviewVersions[1]: Invalid value: "v2": duplicate version',
      'spec.conversion.conversionReviewVersions[2]: Invalid value: "V1": a DNS-1035 label must',
      'spec.conversion.conversionReviewVersions: Invalid value: ["v2","v2","V1"]: must include at least one of v1, v1beta1',
    ],
  },
  'rejects webhook URLs other than https': {
    spec: {
      conversion: {
        strategy: 'Webhook',
        webhook: { clientConfig: { url: 'http://x.y/z' }, conversionReviewVersions: ['v1'] },
      },
    },
    want: ['spec.conversion.webhookClientConfig.url: Invalid value: "http": \'https\' is the only allowed URL scheme'],
  },
  'rejects a webhook without the Webhook strategy': {
    spec: {
      conversion: {
        strategy: 'None',
        webhook: { clientConfig: { url: 'https://x.y/z' }, conversionReviewVersions: ['v1'] },
      },
    },
    want: [
      'spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is not set to Webhook',
      'spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook',
    ],
  },
  'requires a webhook for the Webhook strategy': {
    spec: { conversion: { strategy: 'Webhook', webhook: {} } },
    want: [
      'spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook',
      'spec.conversion.conversionReviewVersions: Required value',
    ],
  },
  'rejects preserveUnknownFields': {
    spec: { preserveUnknownFields: true },
    want: [
      'spec.preserveUnknownFields: Invalid value: true: cannot set to true, set x-kubernetes-preserve-unknown-fields',
    ],
  },
  'requires a schema': {
    version: { schema: {} },
    want: ['spec.versions[0].schema.openAPIV3Schema: Required value'],
  },
  'requires stored versions to stay in the spec': {
    crd: { status: { storedVersions: ['v1', 'v0'] } },
    want: ['status.storedVersions[1]: Invalid value: "v0": must appear in spec.versions'],
  },
  'requires a stored version': {
    crd: { status: { storedVersions: [] } },
    want: ['status.storedVersions: Invalid value: []: must have at least one stored version'],
  },
  'requires columns to be complete': {
    version: {
      additionalPrinterColumns: [
        { name: '', type: 'text', format: 'x', jsonPath: 'spec.x' },
        { name: 'A', type: '', jsonPath: '' },
      ],
    },
    want: [
      'spec.versions[0].additionalPrinterColumns[0].name: Required value',
      'spec.versions[0].additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
      'spec.versions[0].additionalPrinterColumns[0].format: Invalid value: "x": must be one of byte,date,date-time,double,float,int32,int64,password',
      'spec.versions[0].additionalPrinterColumns[0].JSONPath: Invalid value: "spec.x": must be a simple json path starting with .',
      'spec.versions[0].additionalPrinterColumns[1].type: Required value: must be one of',
      'spec.versions[0].additionalPrinterColumns[1].JSONPath: Required value',
    ],
  },
  'requires scale paths under spec and status': {
    version: {
      subresources: { scale: { specReplicasPath: '.status.a', statusReplicasPath: 'b', labelSelectorPath: '.x' } },
    },
    want: [
      'spec.versions[0].subresources.scale.specReplicasPath: Invalid value: ".status.a": should be a json path under .spec',
      'spec.versions[0].subresources.scale.statusReplicasPath: Invalid value: "b": must be a simple json path starting with .',
      'spec.versions[0].subresources.scale.labelSelectorPath: Invalid value: ".x": should be a json path under either .spec or .status',
    ],
  },
  'requires selectable fields to be scalars of the schema': {
    version: {
      selectableFields: ['.spec', '.spec.nope', '.spec.color', '.spec.color'].map((jsonPath) => ({ jsonPath })),
    },
    want: [
      'spec.versions[0].selectableFields[0].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean or integer.',
      'spec.versions[0].selectableFields[1].jsonPath: Invalid value: ".spec.nope": is an invalid path:',
      'spec.versions[0].selectableFields[3].jsonPath: Duplicate value: ".spec.color"',
    ],
  },
  'rejects a deprecation warning for a version that is not deprecated': {
    version: { deprecationWarning: 'old' },
    want: ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
  },
  'requires a printable deprecation warning': {
    version: { deprecated: true, deprecationWarning: 'a\nb' },
    want: [
      'spec.versions[0].deprecationWarning: Invalid value: "a\\nb": must only contain printable UTF-8 characters; non-printable character found at index 1',
    ],
  },
  'rejects root rules that span spec and status': {
    version: { subresources: { status: {} }, schema: { openAPIV3Schema: { ...gadgetSchema, minProperties: 1 } } },
    want: ['spec.versions[0].schema.openAPIV3Schema: Invalid value: '],
  },
};

function buildCrd({ spec, version, crd }: Case): Crd {
  return aCrd({ ...(version === undefined ? {} : { versions: [aVersion(version)] }), ...spec }, crd);
}

function assertBegin(got: string[], want: readonly string[]): void {
  assert.equal(got.length, want.length, got.join('\n'));
  for (const [i, text] of want.entries()) assert.ok(got[i]?.startsWith(text), `${got[i]}\nwanted ${text}`);
}

describe('validateCrd', () => {
  for (const [name, given] of Object.entries(cases)) {
    it(name, () => assertBegin(shown(validateCrd(buildCrd(given))), given.want));
  }

  it('reports the error after a long value', () => {
    const [error] = validateCrd(aCrd({ versions: [aVersion({ storage: false })] }));
    assert.ok(error?.message.endsWith(': must have exactly one version marked as storage version'));
  });

  it('does not repeat the errors of the schema', () => {
    const object: KubeObject = { apiVersion: 'a/v1', kind: 'CustomResourceDefinition', metadata: { name: 'x' } };
    assert.deepEqual(validateCrd(object), []);
  });
});

describe('validateCrdUpdate', () => {
  const old = aCrd();
  prepareCrd(old);
  const changed = aCrd({ scope: 'Cluster', group: 'other.local', names: { plural: 'gizmos', kind: 'Gizmo' } });

  it('rejects changes of group and plural', () => {
    assert.deepEqual(shown(validateCrdUpdate(changed, old)), [
      'spec.group: Invalid value: "other.local": field is immutable',
      'spec.names.plural: Invalid value: "gizmos": field is immutable',
    ]);
  });

  it('rejects changes of scope and kind once established', () => {
    const established = { ...old, status: crdStatus(old, [], '2026-01-01T00:00:00Z') };
    assert.deepEqual(shown(validateCrdUpdate(changed, established)), [
      'spec.scope: Invalid value: "Cluster": field is immutable',
      'spec.names.kind: Invalid value: "Gizmo": field is immutable',
      'spec.group: Invalid value: "other.local": field is immutable',
      'spec.names.plural: Invalid value: "gizmos": field is immutable',
    ]);
  });

  it('allows other changes', () => {
    const next = aCrd({ versions: [aVersion(), aVersion({ name: 'v2', storage: false })] });
    assert.deepEqual(validateCrdUpdate(next, old), []);
  });
});

describe('crdWarnings', () => {
  it('warns about ignored formats', () => {
    const schema = {
      type: 'object',
      properties: { a: { type: 'string', format: 'colour' }, b: { type: 'string', format: 'uuid' } },
    } as const;
    assert.deepEqual(crdWarnings(aCrd({ versions: [aVersion({ schema: { openAPIV3Schema: schema } })] })), [
      'unrecognized format "colour"',
    ]);
    assert.deepEqual(crdWarnings(aCrd()), []);
  });
});
