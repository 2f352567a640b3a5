/** Fills in ipFamilyPolicy and ipFamilies of a Service as kube-apiserver does. Pure, except that it modifies the given spec. */
import { checkAddressFields, familyOf, HEADLESS, isHeadless } from '#engine/registry/kinds/core/service-rules.ts';
import type { ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';
import {
  familyName,
  type IpFamily,
  type ServiceNetworks,
  subnetOf,
} from '#engine/admission/service-addresses/service-networks.ts';
import { deepEqual } from '#kube/deep.ts';
import { type FieldError, invalidValue } from '#kube/field-error.ts';

const POLICY = 'spec.ipFamilyPolicy';

/** Returns the errors that prevent an allocation. */
export function completeIpFamilies(
  spec: ServiceSpec,
  old: ServiceSpec | undefined,
  networks: ServiceNetworks,
): FieldError[] {
  if (spec.type === 'ExternalName' || keepsPreferredFamilies(spec, old)) return [];
  const isFree = isHeadless(spec) && Object.keys(spec.selector ?? {}).length === 0;
  spec.ipFamilyPolicy ??= old?.ipFamilyPolicy ?? (isFree ? 'RequireDualStack' : 'SingleStack');
  const malformed = checkAddressFields(spec);
  if (malformed.length > 0) return malformed;
  const errors = old === undefined ? [] : releaseSecondFamily(spec, old);
  errors.push(...checkSingleStack(spec), ...inferFamilies(spec, networks));
  if (errors.length > 0) return errors;
  const [primary] = networks.subnets.map(familyName);
  if (isFree) {
    // A Service without selector and address may have endpoints of families that this server does not allocate.
    addFamilies(spec, primary, ['IPv4', 'IPv6']);
    return [];
  }
  const unknown = checkConfigured(spec, networks);
  if (unknown.length === 0) addFamilies(spec, primary, networks.subnets.map(familyName));
  return unknown;
}

/** Reports whether an update leaves a Service alone that prefers two families, whatever the server is configured for now. */
function keepsPreferredFamilies(spec: ServiceSpec, old: ServiceSpec | undefined): boolean {
  return (
    old?.ipFamilyPolicy === 'PreferDualStack' &&
    (spec.ipFamilyPolicy ?? 'PreferDualStack') === 'PreferDualStack' &&
    spec.type === old.type &&
    deepEqual(spec.clusterIPs, old.clusterIPs) &&
    deepEqual(spec.ipFamilies, old.ipFamilies)
  );
}

function releaseSecondFamily(spec: ServiceSpec, old: ServiceSpec): FieldError[] {
  const errors: FieldError[] = [];
  if (spec.ipFamilyPolicy === 'SingleStack') {
    if (deepEqual(spec.clusterIPs, old.clusterIPs)) spec.clusterIPs &&= spec.clusterIPs.slice(0, 1);
    if (deepEqual(spec.ipFamilies, old.ipFamilies)) spec.ipFamilies &&= spec.ipFamilies.slice(0, 1);
    return errors;
  }
  const isReduced = (list: readonly string[] = [], before: readonly string[] = []) =>
    before.length > 1 && list.length === 1;
  if (isReduced(spec.clusterIPs, old.clusterIPs)) {
    errors.push(invalidValue(POLICY, spec.ipFamilyPolicy, `must be 'SingleStack' to release the secondary cluster IP`));
  }
  if (isReduced(spec.ipFamilies, old.ipFamilies)) {
    errors.push(invalidValue(POLICY, spec.ipFamilyPolicy, `must be 'SingleStack' to release the secondary IP family`));
  }
  return errors;
}

function checkSingleStack({ ipFamilyPolicy, clusterIPs = [], ipFamilies = [] }: ServiceSpec): FieldError[] {
  if (ipFamilyPolicy !== 'SingleStack') return [];
  const need = (what: string) =>
    invalidValue(
      POLICY,
      ipFamilyPolicy,
      `must be 'RequireDualStack' or 'PreferDualStack' when multiple ${what} are specified`,
    );
  return [
    ...(clusterIPs.length > 1 ? [need('cluster IPs')] : []),
    ...(ipFamilies.length > 1 ? [need('IP families')] : []),
  ];
}

/** Takes families that are not given from the given addresses. */
function inferFamilies(spec: ServiceSpec, networks: ServiceNetworks): FieldError[] {
  const errors: FieldError[] = [];
  const families: IpFamily[] = [...(spec.ipFamilies ?? [])];
  for (const [i, ip] of (spec.clusterIPs ?? []).entries()) {
    if (ip === HEADLESS || i < families.length) continue;
    const family = familyOf(ip);
    if (subnetOf(networks, family) === undefined) {
      errors.push(
        invalidValue(`spec.clusterIPs[${i}]`, spec.clusterIPs, `${family} is not configured on this cluster`),
      );
    } else families.push(family);
  }
  if (families.length > 0) spec.ipFamilies = families;
  return errors;
}

function checkConfigured({ ipFamilyPolicy, ipFamilies = [] }: ServiceSpec, networks: ServiceNetworks): FieldError[] {
  const errors: FieldError[] = [];
  if (ipFamilyPolicy === 'RequireDualStack' && networks.subnets.length < 2) {
    errors.push(invalidValue(POLICY, ipFamilyPolicy, 'this cluster is not configured for dual-stack services'));
  }
  for (const [i, family] of ipFamilies.entries()) {
    if (subnetOf(networks, family) === undefined) {
      errors.push(invalidValue(`spec.ipFamilies[${i}]`, family, 'not configured on this cluster'));
    }
  }
  return errors;
}

function addFamilies(spec: ServiceSpec, primary: IpFamily | undefined, known: readonly IpFamily[]): void {
  const families = spec.ipFamilies?.length ? spec.ipFamilies : [primary ?? 'IPv4'];
  const isSingle = spec.ipFamilyPolicy === 'SingleStack' || families.length > 1;
  spec.ipFamilies = isSingle ? families : [...families, ...known.filter((family) => !families.includes(family))];
}
