/**
 * Features of the processor: what the spec asks for by name, and what features and clock ask for of the hypervisor (KVM,
 * Hyper-V). What only KVM can do is left out where guests are emulated, and told: they start nevertheless. Pure.
 */
import type { Domain } from '#api/domain/domain.ts';
import type { Hyperv, HypervFeature } from '#api/domain/hyperv.ts';
import { invalidValue, type FieldError } from '#kube/field-error.ts';
import type { Capabilities } from '#node/hypervisor/hypervisor.ts';

export type CpuFeatures = Readonly<Record<string, string | number | boolean>>;

/** QEMU separates features by commas: nothing of the kind may come in with a name. */
const NAME = /^[a-z0-9][a-z0-9_.-]{0,62}$/;
const VENDOR = /^[A-Za-z0-9 ._-]{0,12}$/;
const MIN_SPINLOCKS = 4096;

export interface FeaturesFound {
  readonly features?: CpuFeatures;
  /** What the guest does not have although its spec asks for it: sentences for people. */
  readonly left: readonly string[];
}

export function defineCpuFeatures(domain: Domain, capabilities: Capabilities, problems: FieldError[]): FeaturesFound {
  const left: string[] = [];
  const features = {
    ...namedFeatures(domain, capabilities, problems, left),
    ...hypervisorFeatures(domain, capabilities, left),
  };
  return { left, ...(Object.keys(features).length > 0 && { features }) };
}

function namedFeatures(
  { cpu }: Domain,
  { cpuFeatures }: Capabilities,
  problems: FieldError[],
  left: string[],
): CpuFeatures {
  const known = cpuFeatures === undefined ? undefined : new Set(cpuFeatures);
  const found: Record<string, boolean> = {};
  for (const [i, { name, policy = 'require' }] of (cpu?.features ?? []).entries()) {
    const field = `spec.domain.cpu.features[${i}]`;
    const has = known?.has(name);
    if (!NAME.test(name)) problems.push(invalidValue(`${field}.name`, name, 'is no name of a CPU feature'));
    else if (policy === 'require' && has === false) {
      problems.push(invalidValue(`${field}.name`, name, 'the processors of this node do not have it'));
    } else if (policy === 'forbid' && has === true) {
      problems.push(invalidValue(`${field}.policy`, policy, `the processors of this node have ${name}`));
    } else if (policy === 'optional' && has === false) {
      left.push(`The CPU feature ${name} is left out: the processors of this node do not have it.`);
    } else found[name] = policy !== 'disable' && policy !== 'forbid';
  }
  return found;
}

/** QEMU's names, and what each brings along. */
const HYPERV: Readonly<Record<HypervFeature, { readonly flag: string; readonly needs?: readonly string[] }>> = {
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
  { features = {}, clock }: Domain,
  { accelerator }: Capabilities,
  left: string[],
): CpuFeatures {
  const { hyperv = {}, hypervPassthrough, kvm, pvspinlock } = features;
  const timer = clock?.timer ?? {};
  const wanted: Record<string, string | number | boolean> = {
    ...(hypervPassthrough !== undefined && hypervPassthrough.enabled !== false && { 'hv-passthrough': true }),
    ...hypervFlags(hyperv),
    ...(timer.hyperv !== undefined && timer.hyperv.present !== false && { 'hv-time': true }),
    ...(timer.kvm !== undefined && timer.kvm.present !== false && { kvmclock: true }),
    ...(pvspinlock !== undefined && pvspinlock.enabled !== false && { 'kvm-pv-unhalt': true }),
  };
  // Without KVM there is nothing to be hidden or switched off.
  const refused: Record<string, boolean> = {
    ...(kvm?.hidden === true && { kvm: false }),
    ...(timer.kvm?.present === false && { kvmclock: false }),
    ...(pvspinlock?.enabled === false && { 'kvm-pv-unhalt': false }),
  };
  if (accelerator === 'kvm') return { ...wanted, ...refused };
  const names = Object.keys(wanted);
  if (names.length > 0) left.push(`Left out because they need KVM, and this node emulates: ${names.join(', ')}.`);
  return {};
}

function hypervFlags(hyperv: Hyperv): Record<string, string | number | boolean> {
  const flags: Record<string, string | number | boolean> = {};
  for (const [name, { flag, needs = [] }] of Object.entries(HYPERV)) {
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
