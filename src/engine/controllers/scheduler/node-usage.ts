/** A node with the pods on it, and sums over these pods, which are updated as pods are added and removed. */
import type { EngineNode } from '#engine/controllers/kinds.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { addResourceAmounts, type ResourceAmounts, parseAmounts } from '#engine/controllers/scheduler/requests.ts';
import type { Stored } from '#kube/meta.ts';

/** A node as filters and scores see it. */
export interface NodeView {
  readonly name: string;
  readonly node: Stored<EngineNode>;
  readonly allocatable: ResourceAmounts;
  readonly requested: ResourceAmounts;
  readonly scored: ResourceAmounts;
  readonly pods: ReadonlyMap<string, PodFacts>;
  /** Pods with required anti-affinity, which may exclude other pods from the node. */
  readonly antiAffinityPods: ReadonlySet<PodFacts>;
  /** Pods with any affinity or anti-affinity, which affects the score of the node. */
  readonly affinityPods: ReadonlySet<PodFacts>;
  /** The number of pods of each owner, by the owner's uid. */
  readonly owners: ReadonlyMap<string, number>;
}

export class NodeUsage {
  readonly name: string;
  /** undefined while pods are bound to a node that does not exist. */
  node: Stored<EngineNode> | undefined;
  allocatable: ResourceAmounts = new Map();
  readonly requested = new Map<string, number>();
  readonly scored = new Map<string, number>();
  readonly pods = new Map<string, PodFacts>();
  readonly antiAffinityPods = new Set<PodFacts>();
  readonly affinityPods = new Set<PodFacts>();
  readonly owners = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  setNode(node: Stored<EngineNode> | undefined): void {
    this.node = node;
    this.allocatable = parseAmounts(node?.status?.allocatable);
  }

  put(key: string, facts: PodFacts): void {
    this.remove(key);
    this.pods.set(key, facts);
    addResourceAmounts(this.requested, facts.requests);
    addResourceAmounts(this.scored, facts.scored);
    if (facts.requiredAntiAffinity.length > 0) this.antiAffinityPods.add(facts);
    if (hasAffinity(facts)) this.affinityPods.add(facts);
    this.#countOwner(facts, 1);
  }

  remove(key: string): void {
    const facts = this.pods.get(key);
    if (facts === undefined) return;
    this.pods.delete(key);
    addResourceAmounts(this.requested, facts.requests, -1);
    addResourceAmounts(this.scored, facts.scored, -1);
    this.antiAffinityPods.delete(facts);
    this.affinityPods.delete(facts);
    this.#countOwner(facts, -1);
  }

  #countOwner({ owner }: PodFacts, change: 1 | -1): void {
    if (owner === undefined) return;
    const count = (this.owners.get(owner) ?? 0) + change;
    if (count === 0) this.owners.delete(owner);
    else this.owners.set(owner, count);
  }
}

function hasAffinity({
  requiredAffinity,
  requiredAntiAffinity,
  preferredAffinity,
  preferredAntiAffinity,
}: PodFacts): boolean {
  return (
    requiredAffinity.length + requiredAntiAffinity.length + preferredAffinity.length + preferredAntiAffinity.length > 0
  );
}
