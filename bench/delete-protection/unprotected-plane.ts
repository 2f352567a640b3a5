/**
 * Loaded into `selfsame up` before its program, for a plane whose deletes are free until a guard is put up: the operator
 * does not know delete protection, so that nobody puts it back, and one more webhook answers in the server's process.
 * Everything else is as it is.
 */
import { isMainThread } from 'node:worker_threads';

// Agents and worker threads inherit the option, and have no operator.
if (isMainThread && process.argv[2] === 'up') {
  const { PROTECTION_POLICY } = await import('#api/delete-protection.ts');
  const { LocalServices } = await import('#engine/services.ts');
  const { installation } = await import('#operator/objects/installation.ts');
  const { answerReview, LOCAL_SERVICE } = await import('../delete-guards.ts');

  const list = installation as (typeof installation)[number][];
  const others = list.filter(({ object }) => object.metadata.name !== PROTECTION_POLICY);
  list.splice(0, list.length, ...others);

  // Services are registered in code. Whoever is the first to come brings ours along.
  const register = Object.getOwnPropertyDescriptor(LocalServices.prototype, 'register')!
    .value as typeof LocalServices.prototype.register;
  LocalServices.prototype.register = function (namespace, name, service) {
    if (this.find(LOCAL_SERVICE.namespace, LOCAL_SERVICE.name) === undefined) {
      const review = (_path: string, asked: unknown) => Promise.resolve(answerReview(asked));
      register.call(this, LOCAL_SERVICE.namespace, LOCAL_SERVICE.name, { review });
    }
    return register.call(this, namespace, name, service);
  };
}
