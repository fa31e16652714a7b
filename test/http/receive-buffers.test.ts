import { expect, test } from 'bun:test'
import { boundReceiveBuffers } from '../../src/http/receive-buffers.ts'

test.if(process.platform === 'linux')('a bound that cannot be set says why', () => {
  expect(boundReceiveBuffers('no-such-library.so')).toContain('no-such-library.so')
  expect(boundReceiveBuffers()).toBeUndefined()
})
