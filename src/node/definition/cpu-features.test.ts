import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { DomainSpec } from '#api/domain/domain.ts';
import type { FieldError } from '#kube/field-error.ts';
import { defineCpuFeatures } from '#node/definition/cpu-features.ts';
import { someCapabilities } from '#node/definition/testing/a-vmi.ts';

interface Case {
  readonly domain: DomainSpec;
  readonly accelerator?: 'kvm' | 'tcg';
  /** The features of the node's processors; undefined: unknown. */
  readonly node?: readonly string[];
  readonly want?: Readonly<Record<string, unknown>>;
  readonly omitted?: RegExp;
  readonly problem?: RegExp;
}

const feature = (name: string, policy?: 'force' | 'require' | 'optional' | 'disable' | 'forbid'): DomainSpec => ({
  cpu: { features: [{ name, ...(policy && { policy }) }] },
});
const hyperv = (features: NonNullable<DomainSpec['features']>['hyperv']): DomainSpec => ({
  features: { hyperv: features },
});

const cases: Record<string, Case> = {
  'defines no features by default': { domain: {} },
  'enables a feature that the node has': { domain: feature('avx2'), node: ['avx2'], want: { avx2: true } },
  'enables a feature if the features of the node are unknown': { domain: feature('avx2'), want: { avx2: true } },
  'refuses a feature that the node does not have': {
    domain: feature('avx2'),
    node: ['sse2'],
    problem: /features\[0\]\.name: .*do not have it/,
  },
  'leaves out an optional feature that the node does not have': {
    domain: feature('avx2', 'optional'),
    node: [],
    omitted: /avx2 is left out/,
  },
  'enables a forced feature that the node does not have': {
    domain: feature('avx2', 'force'),
    node: [],
    want: { avx2: true },
  },
  'disables a feature': { domain: feature('vmx', 'disable'), node: ['vmx'], want: { vmx: false } },
  'refuses a forbidden feature that the node has': {
    domain: feature('vmx', 'forbid'),
    node: ['vmx'],
    problem: /policy: .*have vmx/,
  },
  'disables a forbidden feature that the node does not have': {
    domain: feature('vmx', 'forbid'),
    node: [],
    want: { vmx: false },
  },
  'refuses a name with an option': { domain: feature('avx2,+vmx'), problem: /is not a valid name of a CPU feature/ },
  'enables the features that a feature depends on': {
    domain: hyperv({ synictimer: {}, evmcs: {} }),
    want: {
      ...{ 'hv-vpindex': true, 'hv-synic': true, 'hv-time': true, 'hv-stimer': true },
      ...{ 'hv-vapic': true, 'hv-evmcs': true },
    },
  },
  'enables nothing for a disabled feature': { domain: hyperv({ synic: { enabled: false } }) },
  'passes numbers and names': {
    domain: hyperv({ spinlocks: { spinlocks: 8191 }, vendorid: { vendorid: 'abc' } }),
    want: { 'hv-spinlocks': 8191, 'hv-vendor-id': 'abc' },
  },
  'ignores a vendor id without a value': { domain: hyperv({ vendorid: {} }) },
  'hides KVM and its clock': {
    domain: { features: { kvm: { hidden: true } }, clock: { timer: { kvm: { present: false }, hyperv: {} } } },
    want: { 'hv-time': true, kvm: false, kvmclock: false },
  },
  'leaves out features that need KVM on a node that emulates': {
    domain: { features: { hyperv: { relaxed: {} }, kvm: { hidden: true }, pvspinlock: {} } },
    accelerator: 'tcg',
    omitted: /^Left out because this node has no KVM: hv-relaxed, kvm-pv-unhalt\.$/,
  },
};
for (const [name, { domain, accelerator = 'kvm', node, want, omitted, problem }] of Object.entries(cases)) {
  test(name, () => {
    const problems: FieldError[] = [];
    const capabilities = { ...someCapabilities(accelerator), ...(node && { cpuFeatures: node }) };
    const found = defineCpuFeatures(domain, capabilities, problems);
    assert.deepEqual(found.features, want);
    assert.match(found.omitted.join('\n'), omitted ?? /^$/);
    assert.match(problems.map(({ field, message }) => `${field}: ${message}`).join('\n'), problem ?? /^$/);
  });
}
