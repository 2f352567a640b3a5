/** Sets a pod's priority from its PriorityClass when it is created. Kubernetes' Priority plugin. */
import type { AdmissionAttributes, MutatingStep, ValidatingStep } from '#engine/admission/admission.ts';
import { refuse } from '#engine/admission/admission.ts';
import { decodeStored } from '#engine/encoding/stored-object.ts';
import type { EnginePodSpec } from '#engine/registry/kinds/pod-spec/pod-spec.ts';
import type { Store } from '#engine/store/store.ts';
import { isRecord, type KubeObject } from '#kube/meta.ts';

const COLLECTION = 'priorityclasses.scheduling.k8s.io';

interface PriorityClass extends KubeObject {
  value?: number;
  globalDefault?: boolean;
  preemptionPolicy?: string;
}

interface Priority {
  readonly name?: string;
  readonly value: number;
  readonly policy: string;
}

const PREEMPTS = 'PreemptLowerPriority';
const NO_CLASS: Priority = { value: 0, policy: PREEMPTS };
/** Built-in classes, which apply even if their objects do not exist. */
const BUILT_IN: ReadonlyMap<string, Priority> = new Map([
  ['system-cluster-critical', { value: 2_000_000_000, policy: PREEMPTS }],
  ['system-node-critical', { value: 2_000_001_000, policy: PREEMPTS }],
]);

export function priorityAdmission(store: Store): MutatingStep {
  return (attributes) => {
    const { operation, resource, subresource, object } = attributes;
    if (operation !== 'CREATE' || resource.collection !== 'pods' || subresource !== '') return;
    if (!isRecord(object?.['spec'])) return;
    const spec = object['spec'] as EnginePodSpec;
    const { name, value, policy } = priorityOf(store, spec.priorityClassName ?? '', attributes);
    if (name !== undefined) spec.priorityClassName = name;
    if (spec.priority !== undefined && spec.priority !== value) {
      throw refuse(
        attributes,
        `the integer value of priority (${spec.priority}) must not be provided in pod spec; priority admission controller computed ${value} from the given PriorityClass name`,
      );
    }
    if (spec.preemptionPolicy !== undefined && spec.preemptionPolicy !== policy) {
      throw refuse(
        attributes,
        `the string value of PreemptionPolicy (${spec.preemptionPolicy}) must not be provided in pod spec; priority admission controller computed ${policy} from the given PriorityClass name`,
      );
    }
    spec.priority = value;
    spec.preemptionPolicy = policy as EnginePodSpec['preemptionPolicy'];
  };
}

/** Allows at most one default class. */
export function priorityClassValidation(store: Store): ValidatingStep {
  return (attributes) => {
    const { operation, resource, object } = attributes;
    if (resource.collection !== COLLECTION || (operation !== 'CREATE' && operation !== 'UPDATE')) return;
    if (object?.['globalDefault'] !== true) return;
    const present = defaultClass(store)?.metadata.name;
    if (present === undefined || (operation === 'UPDATE' && present === object?.metadata.name)) return;
    throw refuse(attributes, `PriorityClass ${present} is already marked as default. Only one default can exist`);
  };
}

function priorityOf(store: Store, name: string, attributes: AdmissionAttributes): Priority {
  if (name === '') {
    const chosen = defaultClass(store);
    return chosen === undefined ? NO_CLASS : { ...priorityIn(chosen), name: chosen.metadata.name };
  }
  const entry = store.latest(COLLECTION, name);
  if (entry !== undefined) return priorityIn(decodeStored(entry.bytes));
  const builtIn = BUILT_IN.get(name);
  if (builtIn === undefined) throw refuse(attributes, `no PriorityClass with name ${name} was found`);
  return builtIn;
}

function priorityIn({ value = 0, preemptionPolicy = PREEMPTS }: PriorityClass): Priority {
  return { value, policy: preemptionPolicy };
}

/** Returns the default class with the lowest value. */
function defaultClass(store: Store): PriorityClass | undefined {
  let chosen: PriorityClass | undefined;
  for (const { bytes } of store.list(COLLECTION, {}).entries) {
    const candidate: PriorityClass = decodeStored(bytes);
    if (candidate.globalDefault !== true) continue;
    if (chosen === undefined || (candidate.value ?? 0) < (chosen.value ?? 0)) chosen = candidate;
  }
  return chosen;
}
