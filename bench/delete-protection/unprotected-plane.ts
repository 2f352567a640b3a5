/**
 * Loaded into `selfsame up` before its program, for a plane without delete protection until a guard is installed:
 * removes the protection from the objects of the operator, which would restore it, and registers an additional webhook
 * in the server's process. Nothing else changes.
 */
import { isMainThread } from 'node:worker_threads';

// Agents and worker threads inherit the option but have no operator.
if (isMainThread && process.argv[2] === 'up') {
  const { PROTECTION_POLICY } = await import('#api/protection/delete-protection.ts');
  const { LocalServices } = await import('#engine/remote/local-services.ts');
  const { maintainedObjects } = await import('#operator/objects/installation.ts');
  const { reviewDelete, LOCAL_SERVICE } = await import('../delete-guards.ts');

  const list = maintainedObjects as (typeof maintainedObjects)[number][];
  const remaining = list.filter(({ object }) => object.metadata.name !== PROTECTION_POLICY);
  list.splice(0, list.length, ...remaining);

  // Services are registered in code: ours is registered together with the first one.
  const register = Object.getOwnPropertyDescriptor(LocalServices.prototype, 'register')!
    .value as typeof LocalServices.prototype.register;
  LocalServices.prototype.register = function (namespace, name, service) {
    if (this.find(LOCAL_SERVICE.namespace, LOCAL_SERVICE.name) === undefined) {
      const review = (_path: string, received: unknown) => Promise.resolve(reviewDelete(received));
      register.call(this, LOCAL_SERVICE.namespace, LOCAL_SERVICE.name, { review });
    }
    return register.call(this, namespace, name, service);
  };
}
