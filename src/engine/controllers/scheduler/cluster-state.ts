/**
 * Nodes with their pods, kept up to date by what informers tell, so that a decision need not walk over all pods. Pods that
 * were given a node a moment ago count at once (`assume`): also while their volumes are awaited.
 */
import { hasEnded } from '#kube/pod-phase.ts';
import type { Node, Pod } from '#engine/controllers/kinds.ts';
import { NodeRoom, type NodeView } from '#engine/controllers/scheduler/node-room.ts';
import { type PodFacts, podFacts } from '#engine/controllers/scheduler/pod-facts.ts';
import type { Stored } from '#kube/meta.ts';

/** Where a pod stands: bound to the node, or only meant for it. */
interface Place {
  readonly node: string;
  readonly uid: string;
  readonly assumed: boolean;
}

export class ClusterState {
  readonly #rooms = new Map<string, NodeRoom>();
  readonly #places = new Map<string, Place>();
  #nodes: readonly NodeView[] | undefined;
  #generation = 0;

  /** Changes with everything that a decision may depend on here. */
  get generation(): number {
    return this.#generation;
  }

  /** In the order of their names. */
  get nodes(): readonly NodeView[] {
    this.#nodes ??= [...this.#rooms.values()]
      .filter((room): room is NodeRoom & { node: Stored<Node> } => room.node !== undefined)
      .sort((a, b) => (a.name < b.name ? -1 : 1));
    return this.#nodes;
  }

  room(name: string): Readonly<NodeRoom> | undefined {
    return this.#rooms.get(name);
  }

  /** Something outside of this state, but of the cluster, is different now. */
  touch(): void {
    this.#generation++;
  }

  setNode(name: string, node: Stored<Node> | undefined): void {
    const room = this.#roomOf(name);
    room.setNode(node);
    this.#nodes = undefined;
    this.#tidy(room);
    this.#generation++;
  }

  /** Takes over what the API says of a pod (undefined: it is gone). Gives the node that it left, where it left one. */
  setPod(key: string, pod: Stored<Pod> | undefined): string | undefined {
    const place = this.#places.get(key);
    const node = pod === undefined || hasEnded(pod) ? '' : (pod.spec.nodeName ?? '');
    // Not bound yet, but meant for a node: it stays counted there.
    if (node === '' && place?.assumed && pod !== undefined && pod.metadata.uid === place.uid && !hasEnded(pod))
      return undefined;
    if (place === undefined && node === '') return undefined;
    this.#remove(key);
    if (pod !== undefined && node !== '') this.#place(key, podFacts(pod), { node, assumed: false });
    this.#generation++;
    return place?.node === node ? undefined : place?.node;
  }

  assume(key: string, facts: PodFacts, node: string): void {
    this.#remove(key);
    this.#place(key, facts, { node, assumed: true });
    this.#generation++;
  }

  /** The node that the pod was meant for, which it gives up now; bound pods stay. */
  release(key: string): string | undefined {
    const place = this.#places.get(key);
    if (place === undefined || !place.assumed) return undefined;
    this.#remove(key);
    this.#generation++;
    return place.node;
  }

  #place(key: string, facts: PodFacts, place: Omit<Place, 'uid'>): void {
    this.#places.set(key, { ...place, uid: facts.pod.metadata.uid });
    this.#roomOf(place.node).put(key, facts);
  }

  #remove(key: string): void {
    const place = this.#places.get(key);
    if (place === undefined) return;
    this.#places.delete(key);
    const room = this.#roomOf(place.node);
    room.remove(key);
    this.#tidy(room);
  }

  #roomOf(name: string): NodeRoom {
    let room = this.#rooms.get(name);
    if (room === undefined) this.#rooms.set(name, (room = new NodeRoom(name)));
    return room;
  }

  #tidy(room: NodeRoom): void {
    if (room.node === undefined && room.pods.size === 0) this.#rooms.delete(room.name);
  }
}
