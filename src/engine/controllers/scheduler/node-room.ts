/** A node with the pods on it, and sums over them that are kept as pods come and go. */
import type { Node } from '#engine/controllers/kinds.ts';
import type { PodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import { add, type Amounts, amountsOf } from '#engine/controllers/scheduler/requests.ts';
import type { Stored } from '#kube/meta.ts';

/** As filters and scores see it. */
export interface NodeView {
  readonly name: string;
  readonly node: Stored<Node>;
  readonly allocatable: Amounts;
  readonly requested: Amounts;
  readonly scored: Amounts;
  readonly pods: ReadonlyMap<string, PodFacts>;
  /** Those with required anti-affinity: they may keep others away. */
  readonly guarded: ReadonlySet<PodFacts>;
  /** Those with affinity of any kind: they may want others near. */
  readonly choosy: ReadonlySet<PodFacts>;
  /** How many pods of each owner are there. */
  readonly owners: ReadonlyMap<string, number>;
}

export class NodeRoom {
  readonly name: string;
  /** Absent while pods are bound to a node that is not there. */
  node: Stored<Node> | undefined;
  allocatable: Amounts = new Map();
  readonly requested = new Map<string, number>();
  readonly scored = new Map<string, number>();
  readonly pods = new Map<string, PodFacts>();
  readonly guarded = new Set<PodFacts>();
  readonly choosy = new Set<PodFacts>();
  readonly owners = new Map<string, number>();

  constructor(name: string) {
    this.name = name;
  }

  setNode(node: Stored<Node> | undefined): void {
    this.node = node;
    this.allocatable = amountsOf(node?.status?.allocatable);
  }

  put(key: string, facts: PodFacts): void {
    this.remove(key);
    this.pods.set(key, facts);
    add(this.requested, facts.requests);
    add(this.scored, facts.scored);
    if (facts.apart.length > 0) this.guarded.add(facts);
    if (hasAffinity(facts)) this.choosy.add(facts);
    this.#countOwner(facts, 1);
  }

  remove(key: string): void {
    const facts = this.pods.get(key);
    if (facts === undefined) return;
    this.pods.delete(key);
    add(this.requested, facts.requests, -1);
    add(this.scored, facts.scored, -1);
    this.guarded.delete(facts);
    this.choosy.delete(facts);
    this.#countOwner(facts, -1);
  }

  #countOwner({ owner }: PodFacts, change: 1 | -1): void {
    if (owner === undefined) return;
    const count = (this.owners.get(owner) ?? 0) + change;
    if (count === 0) this.owners.delete(owner);
    else this.owners.set(owner, count);
  }
}

function hasAffinity({ near, apart, ratherNear, ratherApart }: PodFacts): boolean {
  return near.length + apart.length + ratherNear.length + ratherApart.length > 0;
}
