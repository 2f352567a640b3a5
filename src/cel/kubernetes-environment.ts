/** The environment for Kubernetes' expressions: the language, optionals and the libraries of policies. */
import { createEnvironment } from '#cel/environment.ts';
import type { Environment } from '#cel/environment.ts';
import { kubernetesLibraries } from '#cel/kubernetes/libraries.ts';
import { optionalLibrary } from '#cel/standard/optional.ts';
import { standardLibrary } from '#cel/standard/standard.ts';

/** Has no variables: add `object`, `self` and others with `withVariables`. */
export const kubernetesEnvironment: Environment = createEnvironment([
  standardLibrary,
  optionalLibrary,
  ...kubernetesLibraries,
]);
