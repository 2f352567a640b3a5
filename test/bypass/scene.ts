/** The fixture of delete-protection.test.ts: one protected VM, and the rows that describe an attempt to delete it. */
import type { TestResponse, CallOptions, Loose } from '#test/support/test-api.ts';
import { locateDisk, urlsOf, protectedStateOf } from '#test/support/protection.ts';
import type { VmPlane } from '#test/support/vm-plane.ts';

export const STRATEGIC = 'application/strategic-merge-patch+json';
/** Long enough for the operator to restore what was deleted. */
export const A_WHILE_MS = 15_000;

/** A client that RBAC allows everything, with a name that a policy may treat in a special way. */
export const almighty = (name: string): CallOptions => ({
  user: { name, groups: ['system:masters', 'system:authenticated'] },
});
export const ours = (account: string) => almighty(`system:serviceaccount:selfsame-system:${account}`);
export const engines = (account: string) => almighty(`system:serviceaccount:kube-system:${account}`);

export const { vms, vmis, pods, claims, namespace, configMaps, records, snapshots, restores } = urlsOf('shop');
export const VM = `${vms}/db`;

export class Scene {
  readonly plane: VmPlane;
  /** URLs of the disk of the VM. */
  volume = '';
  claim = '';
  readonly call: (method: string, url: string, options?: CallOptions) => Promise<TestResponse>;

  constructor(plane: VmPlane) {
    this.plane = plane;
    this.call = (method, url, options) => plane.call(method, url, options);
  }

  async readVm(): Promise<Loose> {
    const { volume, claim } = await locateDisk(this.plane, 'shop', 'db');
    this.volume = `/api/v1/persistentvolumes/${volume}`;
    this.claim = `${claims}/${claim}`;
    return await protectedStateOf(this.plane, 'shop', 'db');
  }

  /** Makes the calls one after the other and returns the last answer. */
  async inOrder(...calls: (() => Promise<TestResponse>)[]): Promise<TestResponse> {
    let answer: TestResponse | undefined;
    for (const call of calls) answer = await call();
    return answer!;
  }

  /** Reads the object, changes it and writes it as a whole. */
  async replace(
    url: string,
    change: (object: Loose) => void,
    options: CallOptions = {},
    at = url,
  ): Promise<TestResponse> {
    const object = await this.plane.server.api.ok('GET', url);
    change(object);
    return await this.call('PUT', at, { ...options, body: object });
  }
}

export interface Row {
  readonly attempt: (scene: Scene) => Promise<TestResponse>;
  /** Harmless: the request succeeds, and the VM and its disk are still there and protected. */
  readonly want: 'refused' | 'harmless';
  readonly why: string;
  /** The expected refusal, if it is not that of delete protection. */
  readonly refusal?: RegExp;
  /** Restores the state that the next row expects. */
  readonly cleanUp?: (scene: Scene) => Promise<unknown>;
}

export const BY_MARK = 'the mark names the protected VM that would lose it';
export const NOT_WRITTEN = 'only the server writes this field';

export const del = (url: string | ((scene: Scene) => string), options?: CallOptions) => (scene: Scene) =>
  scene.call('DELETE', typeof url === 'string' ? url : url(scene), options);
export const patch = (url: string | ((scene: Scene) => string), options: CallOptions) => (scene: Scene) =>
  scene.call('PATCH', typeof url === 'string' ? url : url(scene), options);
export const claimOf = ({ claim }: Scene) => claim;
export const volumeOf = ({ volume }: Scene) => volume;
export const refused = (why: string, attempt: Row['attempt'], refusal?: RegExp): Row => ({
  attempt,
  want: 'refused',
  why,
  ...(refusal === undefined ? {} : { refusal }),
});
export const harmless = (why: string, attempt: Row['attempt'], cleanUp?: Row['cleanUp']): Row => ({
  attempt,
  want: 'harmless',
  why,
  ...(cleanUp === undefined ? {} : { cleanUp }),
});
