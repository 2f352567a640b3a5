/**
 * Defines the CPU features of a guest: those that the spec names, and those of the hypervisor (KVM, Hyper-V) that
 * `features` and `clock` ask for. Features that need KVM are left out on a node that emulates, with a note; the guest
 * still starts. Pure.
 */
import type { DomainSpec } from '#api/domain/domain.ts';
import type { Hyperv, HypervFeature } from '#api/domain/hyperv.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Capabilities } from '#node/hardware/capabilities.ts';

type CpuFeatures = Readonly<Record<string, string | number | boolean>>;

/** Excludes commas, with which QEMU separates features. */
const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;
const VENDOR = /^[A-Za-z0-9 ._-]{0,12}$/;
const MIN_SPINLOCKS = 4096;

interface CpuFeaturesResult {
  readonly features?: CpuFeatures;
  /** Sentences for users about features that the guest does not get although its spec asks for them. */
  readonly omitted: readonly string[];
}

export function defineCpuFeatures(
  domain: DomainSpec,
  capabilities: Capabilities,
  problems: FieldError[],
): CpuFeaturesResult {
  const omitted: string[] = [];
  const features = {
    ...namedFeatures(domain, capabilities, problems, omitted),
    ...hypervisorFeatures(domain, capabilities, omitted),
  };
  return { omitted, ...(Object.keys(features).length > 0 && { features }) };
}

function namedFeatures(
  { cpu }: DomainSpec,
  { cpuFeatures }: Capabilities,
  problems: FieldError[],
  omitted: string[],
): CpuFeatures {
  const known = cpuFeatures === undefined ? undefined : new Set(cpuFeatures);
  const found: Record<string, boolean> = {};
  for (const [i, { name, policy = 'require' }] of (cpu?.features ?? []).entries()) {
    const field = `spec.domain.cpu.features[${i}]`;
    const has = known?.has(name);
    if (!NAME.test(name)) problems.push(invalidValue(`${field}.name`, name, 'is not a valid name of a CPU feature'));
    else if (policy === 'require' && has === false) {
      problems.push(invalidValue(`${field}.name`, name, 'the processors of this node do not have it'));
    } else if (policy === 'forbid' && has === true) {
      problems.push(invalidValue(`${field}.policy`, policy, `the processors of this node have ${name}`));
    } else if (policy === 'optional' && has === false) {
      omitted.push(`The CPU feature ${name} is left out: the processors of this node do not have it.`);
    } else found[name] = policy !== 'disable' && policy !== 'forbid';
  }
  return found;
}

/** QEMU's flag for each feature, and the flags that it depends on. */
const HYPERV_FLAGS: Readonly<Record<HypervFeature, { readonly flag: string; readonly needs?: readonly string[] }>> = {
  relaxed: { flag: 'hv-relaxed' },
  vapic: { flag: 'hv-vapic' },
  spinlocks: { flag: 'hv-spinlocks' },
  vpindex: { flag: 'hv-vpindex' },
  runtime: { flag: 'hv-runtime' },
  synic: { flag: 'hv-synic', needs: ['hv-vpindex'] },
  synictimer: { flag: 'hv-stimer', needs: ['hv-vpindex', 'hv-synic', 'hv-time'] },
  reset: { flag: 'hv-reset' },
  vendorid: { flag: 'hv-vendor-id' },
  frequencies: { flag: 'hv-frequencies' },
  reenlightenment: { flag: 'hv-reenlightenment' },
  tlbflush: { flag: 'hv-tlbflush', needs: ['hv-vpindex'] },
  ipi: { flag: 'hv-ipi', needs: ['hv-vpindex'] },
  evmcs: { flag: 'hv-evmcs', needs: ['hv-vapic'] },
};

function hypervisorFeatures(
  { features = {}, clock }: DomainSpec,
  { accelerator }: Capabilities,
  omitted: string[],
): CpuFeatures {
  const { hyperv = {}, hypervPassthrough, kvm, pvspinlock } = features;
  const timer = clock?.timer ?? {};
  const enabled: Record<string, string | number | boolean> = {
    ...(hypervPassthrough !== undefined && hypervPassthrough.enabled !== false && { 'hv-passthrough': true }),
    ...hypervFlags(hyperv),
    ...(timer.hyperv !== undefined && timer.hyperv.present !== false && { 'hv-time': true }),
    ...(timer.kvm !== undefined && timer.kvm.present !== false && { kvmclock: true }),
    ...(pvspinlock !== undefined && pvspinlock.enabled !== false && { 'kvm-pv-unhalt': true }),
  };
  // Without KVM these are off anyway.
  const disabled: Record<string, boolean> = {
    ...(kvm?.hidden === true && { kvm: false }),
    ...(timer.kvm?.present === false && { kvmclock: false }),
    ...(pvspinlock?.enabled === false && { 'kvm-pv-unhalt': false }),
  };
  if (accelerator === 'kvm') return { ...enabled, ...disabled };
  const names = Object.keys(enabled);
  if (names.length > 0) omitted.push(`Left out because this node has no KVM: ${names.join(', ')}.`);
  return {};
}

function hypervFlags(hyperv: Hyperv): Record<string, string | number | boolean> {
  const flags: Record<string, string | number | boolean> = {};
  for (const [name, { flag, needs = [] }] of Object.entries(HYPERV_FLAGS)) {
    const feature = hyperv[name as HypervFeature];
    if (feature === undefined || feature.enabled === false) continue;
    for (const need of needs) flags[need] = true;
    flags[flag] = true;
  }
  if (flags['hv-spinlocks'] !== undefined) {
    flags['hv-spinlocks'] = Math.max(MIN_SPINLOCKS, hyperv.spinlocks?.spinlocks ?? MIN_SPINLOCKS);
  }
  const vendor = hyperv.vendorid?.vendorid ?? '';
  if (vendor !== '' && VENDOR.test(vendor) && flags['hv-vendor-id'] !== undefined) flags['hv-vendor-id'] = vendor;
  else delete flags['hv-vendor-id'];
  const direct = hyperv.synictimer?.direct;
  if (flags['hv-stimer'] !== undefined && direct !== undefined && direct.enabled !== false) {
    flags['hv-stimer-direct'] = true;
  }
  return flags;
}
