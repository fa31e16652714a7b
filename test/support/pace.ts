import type { ResponseHandler } from '../../src/upstream/http-connection.ts'

/** For tests of responses that nobody else waits for. */
export const unhurried: Pick<
  ResponseHandler,
  'wait' | 'spend' | 'hold' | 'release' | 'enterHandshake' | 'mayBegin' | 'onWrite'
> = {
  wait: () => 0,
  spend() {},
  hold: () => true,
  release() {},
  enterHandshake: async () => () => {},
  mayBegin: () => undefined,
  onWrite: () => {},
}
