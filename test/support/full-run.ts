/** Whether this is `npm run test:full`, where tests have their longer form. */
export const FULL_RUN = process.env['SELFSAME_TEST_FULL'] === '1';
