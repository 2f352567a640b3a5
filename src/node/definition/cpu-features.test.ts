import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Domain } from '#api/domain/domain.ts';
import type { FieldError } from '#kube/field-error.ts';
import { defineCpuFeatures } from '#node/definition/cpu-features.ts';
import { someCapabilities } from '#node/definition/testing/a-vmi.ts';

interface Case {
  readonly domain: Domain;
  readonly accelerator?: 'kvm' | 'tcg';
  /** What the processors of the node have; undefined: nobody knows. */
  readonly node?: readonly string[];
  readonly want?: Readonly<Record<string, unknown>>;
  readonly left?: RegExp;
  readonly problem?: RegExp;
}

const feature = (name: string, policy?: 'force' | 'require' | 'optional' | 'disable' | 'forbid'): Domain => ({
  cpu: { features: [{ name, ...(policy && { policy }) }] },
});
const hyperv = (features: NonNullable<Domain['features']>['hyperv']): Domain => ({ features: { hyperv: features } });

const cases: Record<string, Case> = {
  'nothing asked for': { domain: {} },
  'a feature that the node has': { domain: feature('avx2'), node: ['avx2'], want: { avx2: true } },
  'a feature that the node may have': { domain: feature('avx2'), want: { avx2: true } },
  'one that it has not': { domain: feature('avx2'), node: ['sse2'], problem: /features\[0\]\.name: .*do not have it/ },
  'one that is not needed': { domain: feature('avx2', 'optional'), node: [], left: /avx2 is left out/ },
  'one that is forced': { domain: feature('avx2', 'force'), node: [], want: { avx2: true } },
  'one that is taken away': { domain: feature('vmx', 'disable'), node: ['vmx'], want: { vmx: false } },
  'one that nodes must not have': { domain: feature('vmx', 'forbid'), node: ['vmx'], problem: /policy: .*have vmx/ },
  'one that they have not': { domain: feature('vmx', 'forbid'), node: [], want: { vmx: false } },
  'a name that would be an option': { domain: feature('avx2,+vmx'), problem: /is no name of a CPU feature/ },
  'what brings others along': {
    domain: hyperv({ synictimer: {}, evmcs: {} }),
    want: {
      ...{ 'hv-vpindex': true, 'hv-synic': true, 'hv-time': true, 'hv-stimer': true },
      ...{ 'hv-vapic': true, 'hv-evmcs': true },
    },
  },
  'what is switched off brings nothing': { domain: hyperv({ synic: { enabled: false } }) },
  'numbers and names': {
    domain: hyperv({ spinlocks: { spinlocks: 8191 }, vendorid: { vendorid: 'abc' } }),
    want: { 'hv-spinlocks': 8191, 'hv-vendor-id': 'abc' },
  },
  'a vendor without a name': { domain: hyperv({ vendorid: {} }) },
  'KVM that is hidden, and its clock': {
    domain: { features: { kvm: { hidden: true } }, clock: { timer: { kvm: { present: false }, hyperv: {} } } },
    want: { 'hv-time': true, kvm: false, kvmclock: false },
  },
  'nothing of it where guests are emulated, and it is told': {
    domain: { features: { hyperv: { relaxed: {} }, kvm: { hidden: true }, pvspinlock: {} } },
    accelerator: 'tcg',
    left: /^Left out because they need KVM, and this node emulates: hv-relaxed, kvm-pv-unhalt\.$/,
  },
};
for (const [name, { domain, accelerator = 'kvm', node, want, left, problem }] of Object.entries(cases)) {
  test(name, () => {
    const problems: FieldError[] = [];
    const capabilities = { ...someCapabilities(accelerator), ...(node && { cpuFeatures: node }) };
    const found = defineCpuFeatures(domain, capabilities, problems);
    assert.deepEqual(found.features, want);
    assert.match(found.left.join('\n'), left ?? /^$/);
    assert.match(problems.map(({ field, message }) => `${field}: ${message}`).join('\n'), problem ?? /^$/);
  });
}
