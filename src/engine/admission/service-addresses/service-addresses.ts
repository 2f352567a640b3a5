/**
 * Allocates addresses and node ports of Services. There is no stored allocation besides the Services themselves: the
 * mutating step chooses values that no Service has, writes in flight included, and the guard checks them again in the same
 * turn as the write. So no two Services can have the same value, and a deleted Service releases its values by itself.
 */
import { randomInt } from 'node:crypto';
import type { AdmissionAttributes, Guard, MutatingStep } from '#engine/admission/admission.ts';
import {
  addressesOf,
  allocateService,
  findConflicts,
  portsOf,
  type Taken,
} from '#engine/admission/service-addresses/allocate-service.ts';
import type { PickIndex, ServiceNetworks } from '#engine/admission/service-addresses/service-networks.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { ServiceSpec } from '#engine/registry/kinds/core/service-schema.ts';
import type { Entry, Store } from '#engine/store/store.ts';
import { internalError, invalid, tooManyRequests } from '#kube/api-error.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

interface ServiceAddressSteps {
  readonly mutating: MutatingStep;
  readonly guard: Guard;
}

interface Used {
  readonly addresses: readonly string[];
  readonly ports: readonly number[];
}

const SERVICES = 'services';
/** Values that running requests may have chosen, which others should not choose as well. */
const MAX_CHOSEN = 512;
const RETRY_SECONDS = 1;

export function serviceAddresses(
  store: Store,
  networks: ServiceNetworks,
  pick: PickIndex = randomInt,
): ServiceAddressSteps {
  const usedBy = new WeakMap<Entry, Used>();
  const usedOf = (entry: Entry): Used => {
    let used = usedBy.get(entry);
    if (used === undefined) {
      const spec = specOf(decodeStored(entry.bytes));
      used = { addresses: addressesOf(spec), ports: portsOf(spec) };
      usedBy.set(entry, used);
    }
    return used;
  };
  // Decodes what the store has at the start, so that the first request does not wait for it.
  for (const entry of store.listLatest(SERVICES, '')) usedOf(entry);
  const takenByOthers = (ownId: string): Taken => {
    const others = store.listLatest(SERVICES, '').filter(({ id }) => id !== ownId);
    const addresses = new Set(others.flatMap((entry) => usedOf(entry).addresses));
    const ports = new Set(others.flatMap((entry) => usedOf(entry).ports));
    return { hasAddress: (ip) => addresses.has(ip), hasPort: (port) => ports.has(port) };
  };
  const chosen = new Set<string | number>();
  const remember = (values: readonly (string | number)[]) => {
    for (const value of values) {
      chosen.delete(value);
      chosen.add(value);
    }
    for (const value of chosen) {
      if (chosen.size <= MAX_CHOSEN) break;
      chosen.delete(value);
    }
  };

  return {
    mutating(attributes) {
      const spec = writtenSpec(attributes);
      if (spec === undefined) return;
      const old = specOf(attributes.oldObject);
      const taken = takenByOthers(idOf(attributes));
      const before = new Set<string | number>([...addressesOf(spec), ...portsOf(spec)]);
      let given = structuredClone(spec);
      let result = allocateService(given, old, { networks, taken: withChosen(taken, chosen, before), pick });
      if ('exhausted' in result) {
        given = structuredClone(spec);
        result = allocateService(given, old, { networks, taken, pick });
      }
      if ('exhausted' in result) throw internalError(result.exhausted);
      if (result.errors.length > 0) throw invalid(attributes.resource, attributes.name, result.errors);
      replaceFields(spec, given);
      remember([...addressesOf(spec), ...portsOf(spec)].filter((value) => !before.has(value)));
    },
    guard(attributes) {
      const spec = writtenSpec(attributes);
      if (spec === undefined) return;
      const own = new Set<string | number>([...addressesOf(spec), ...portsOf(spec)]);
      for (const value of [...addressesOf(specOf(attributes.oldObject)), ...portsOf(specOf(attributes.oldObject))]) {
        own.delete(value);
      }
      // Values that the stored Service already has cannot be lost by writing it again.
      if (own.size === 0) return;
      const taken = takenByOthers(idOf(attributes));
      const errors = findConflicts(spec, {
        hasAddress: (ip) => own.has(ip) && taken.hasAddress(ip),
        hasPort: (port) => own.has(port) && taken.hasPort(port),
      });
      if (errors.length === 0) return;
      if ([...own].some((value) => chosen.has(value))) {
        throw tooManyRequests('the allocated address or node port was taken by another request', RETRY_SECONDS);
      }
      throw invalid(attributes.resource, attributes.name, errors);
    },
  };
}

/** Also excludes what running requests have chosen, but not what this request asks for. */
function withChosen(taken: Taken, chosen: ReadonlySet<string | number>, asked: ReadonlySet<string | number>): Taken {
  const isChosen = (value: string | number) => chosen.has(value) && !asked.has(value);
  return {
    hasAddress: (ip) => taken.hasAddress(ip) || isChosen(ip),
    hasPort: (port) => taken.hasPort(port) || isChosen(port),
  };
}

/** Returns the spec of a Service that is created or updated. */
function writtenSpec({ resource, subresource, operation, object }: AdmissionAttributes): ServiceSpec | undefined {
  if (resource.collection !== SERVICES || subresource !== '') return undefined;
  if (operation !== 'CREATE' && operation !== 'UPDATE') return undefined;
  return specOf(object);
}

function specOf(object: KubeObject | undefined): ServiceSpec | undefined {
  return isRecord(object?.['spec']) ? object['spec'] : undefined;
}

const idOf = ({ namespace, name }: AdmissionAttributes) => `${namespace}/${name}`;

function replaceFields(target: object, source: object): void {
  const fields = target as Record<string, unknown>;
  for (const key of Object.keys(fields)) delete fields[key];
  Object.assign(fields, source);
}
