import { expect, test } from 'bun:test'
import { createPipelining } from '../../src/http/pipelining.ts'
import { pipelinedBusyRequests, pipelinedRequestsMax, pipelinedWindowMs } from '../../src/limits.ts'

test('a connection that sends very many requests at once is closed, and no other, nor the same one later', () => {
  const pipelining = createPipelining((request) => request.headers.get('port') ?? '')
  const from = (port: string) => new Request('http://localhost/health', { headers: { port } })
  const asked: string[] = []
  const counting = createPipelining((request) => {
    asked.push('asked')
    return request.headers.get('port') ?? ''
  })
  for (let i = 0; i < pipelinedBusyRequests; i += 1) {
    expect(pipelining.isTooMuch(from('1'), 0)).toBe(false)
    counting.isTooMuch(from('1'), 0)
  }
  expect(asked).toEqual([])
  const results = Array.from({ length: pipelinedRequestsMax + 1 }, () => pipelining.isTooMuch(from('1'), 1))
  expect(results.indexOf(true)).toBe(pipelinedRequestsMax)
  expect(pipelining.isTooMuch(from('2'), 1)).toBe(false)
  expect(pipelining.isTooMuch(from('1'), pipelinedWindowMs)).toBe(false)
})
