/**
 * Nodes with their pods. Informers keep the state up to date, so that a decision need not iterate over all pods. A pod
 * counts on its node as soon as it is assigned (`assume`), before the binding is written and while its volumes are
 * created.
 */
import { hasEnded } from '#kube/pod-phase.ts';
import type { EngineNode, EnginePod } from '#engine/controllers/kinds.ts';
import { NodeUsage, type NodeView } from '#engine/controllers/scheduler/node-usage.ts';
import { type PodFacts, readPodFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import type { Stored } from '#kube/meta.ts';

/** The node of a pod: bound to it, or only assumed to run there. */
interface PodPlace {
  readonly node: string;
  readonly uid: string;
  readonly assumed: boolean;
}

export class ClusterState {
  readonly #usages = new Map<string, NodeUsage>();
  readonly #places = new Map<string, PodPlace>();
  #nodes: readonly NodeView[] | undefined;
  #generation = 0;

  /** Increases with each change that a decision may depend on. */
  get generation(): number {
    return this.#generation;
  }

  /** The nodes in the order of their names. */
  get nodes(): readonly NodeView[] {
    this.#nodes ??= [...this.#usages.values()]
      .filter((usage): usage is NodeUsage & { node: Stored<EngineNode> } => usage.node !== undefined)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#nodes;
  }

  usage(name: string): Readonly<NodeUsage> | undefined {
    return this.#usages.get(name);
  }

  /** Records that something else in the cluster changed which decisions depend on. */
  touch(): void {
    this.#generation++;
  }

  setNode(name: string, node: Stored<EngineNode> | undefined): void {
    const usage = this.#usageOf(name);
    usage.setNode(node);
    this.#nodes = undefined;
    this.#removeIfUnused(usage);
    this.#generation++;
  }

  /** Records the state of a pod; undefined = it was deleted. Returns the node that the pod left, if it left one. */
  setPod(key: string, pod: Stored<EnginePod> | undefined): string | undefined {
    const place = this.#places.get(key);
    const node = pod === undefined || hasEnded(pod) ? '' : (pod.spec.nodeName ?? '');
    // An assumed pod that is not bound yet still counts on its node.
    if (node === '' && place?.assumed && pod !== undefined && pod.metadata.uid === place.uid && !hasEnded(pod))
      return undefined;
    if (place === undefined && node === '') return undefined;
    this.#remove(key);
    if (pod !== undefined && node !== '') this.#place(key, readPodFacts(pod), { node, assumed: false });
    this.#generation++;
    return place?.node === node ? undefined : place?.node;
  }

  assume(key: string, facts: PodFacts, node: string): void {
    this.#remove(key);
    this.#place(key, facts, { node, assumed: true });
    this.#generation++;
  }

  /** Removes an assumed pod from its node and returns that node. Does nothing for a bound pod. */
  forgetAssumed(key: string): string | undefined {
    const place = this.#places.get(key);
    if (place === undefined || !place.assumed) return undefined;
    this.#remove(key);
    this.#generation++;
    return place.node;
  }

  #place(key: string, facts: PodFacts, place: Omit<PodPlace, 'uid'>): void {
    this.#places.set(key, { ...place, uid: facts.pod.metadata.uid });
    this.#usageOf(place.node).put(key, facts);
  }

  #remove(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    const usage = this.#usageOf(place.node);
    usage.remove(key);
    this.#removeIfUnused(usage);
  }

  #usageOf(name: string): NodeUsage {
    let usage = this.#usages.get(name);
    if (usage === undefined) this.#usages.set(name, (usage = new NodeUsage(name)));
    return usage;
  }

  #removeIfUnused(usage: NodeUsage): void {
    if (usage.node === undefined && usage.pods.size === 0) this.#usages.delete(usage.name);
  }
}
