/** Whether a server listens on all addresses of its machine there: nobody can be told to connect to it. */
export const isWildcard = (address: string) => address === '0.0.0.0' || address === '::';
