/** The scene of delete-protection.test.ts: one protected VM, and what a way around it looks like. */
import type { Answer, CallOptions, Loose } from '#test/support/test-api.ts';
import { diskPlace, placesOf, worldOf } from '#test/support/protection.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

export const STRATEGIC = 'application/strategic-merge-patch+json';
/** Long enough for whatever is put back after a while. */
export const A_WHILE_MS = 15_000;

/** Somebody to whom RBAC refuses nothing, by a name that may mean something to a policy. */
export const almighty = (name: string): CallOptions => ({
  user: { name, groups: ['system:masters', 'system:authenticated'] },
});
export const ours = (account: string) => almighty(`system:serviceaccount:selfsame-system:${account}`);
export const engines = (account: string) => almighty(`system:serviceaccount:kube-system:${account}`);

export const { vms, vmis, pods, claims, namespace, configMaps, records, snapshots, restores } = placesOf('shop');
export const VM = `${vms}/db`;

export class Scene {
  readonly plane: VmPlane;
  /** Of the disk of the VM. */
  volume = '';
  claim = '';
  readonly call: (method: string, url: string, options?: CallOptions) => Promise<Answer>;

  constructor(plane: VmPlane) {
    this.plane = plane;
    this.call = (method, url, options) => plane.call(method, url, options);
  }

  async look(): Promise<Loose> {
    const { volume, claim } = await diskPlace(this.plane, 'shop', 'db');
    this.volume = `/api/v1/persistentvolumes/${volume}`;
    this.claim = `${claims}/${claim}`;
    return await worldOf(this.plane, 'shop', 'db');
  }

  /** One after the other; the answer is the last one's. */
  async inOrder(...calls: (() => Promise<Answer>)[]): Promise<Answer> {
    let answer: Answer | undefined;
    for (const call of calls) answer = await call();
    return answer!;
  }

  /** What is there, changed and put as a whole. */
  async replace(url: string, change: (object: Loose) => void, options: CallOptions = {}, at = url): Promise<Answer> {
    const object = await this.plane.server.api.ok('GET', url);
    change(object);
    return await this.call('PUT', at, { ...options, body: object });
  }
}

export interface Row {
  readonly attempt: (scene: Scene) => Promise<Answer>;
  /** Harmless: it is done, and the VM with its disk is still there, as protected as before. */
  readonly want: 'refused' | 'harmless';
  readonly why: string;
  /** Where the refusal is not that of delete protection. */
  readonly says?: RegExp;
  /** What has to be tidied up, so that the next row finds what this one did. */
  readonly tidy?: (scene: Scene) => Promise<unknown>;
}

export const BY_MARK = 'the mark says which protected VM would be lost with it';
export const NOT_WRITTEN = 'what only the server decides cannot be written';

export const del = (url: string | ((scene: Scene) => string), options?: CallOptions) => (scene: Scene) =>
  scene.call('DELETE', typeof url === 'string' ? url : url(scene), options);
export const patch = (url: string | ((scene: Scene) => string), options: CallOptions) => (scene: Scene) =>
  scene.call('PATCH', typeof url === 'string' ? url : url(scene), options);
export const claimOf = ({ claim }: Scene) => claim;
export const volumeOf = ({ volume }: Scene) => volume;
export const refused = (why: string, attempt: Row['attempt'], says?: RegExp): Row => ({
  attempt,
  want: 'refused',
  why,
  ...(says === undefined ? {} : { says }),
});
export const harmless = (why: string, attempt: Row['attempt'], tidy?: Row['tidy']): Row => ({
  attempt,
  want: 'harmless',
  why,
  ...(tidy === undefined ? {} : { tidy }),
});
