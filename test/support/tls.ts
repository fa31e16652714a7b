/** HTTPS on this machine, for what is only done over HTTPS. */

/** Of a certificate for 127.0.0.1 that vouches for itself, made for tests alone. */
export const key = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgu6P8TNMmEEFuw2Ga
/rwNiL68ffvNb5hoQKcKMPnKwEChRANCAATUArPvYe0rq+ICD4fcmOhhxj8jVNR0
r9jo83/Q2xB+fP89EBe5DHs5gj+Op0kutStPiJxIYGtznIHmNobnJNie
-----END PRIVATE KEY-----`
export const cert = `-----BEGIN CERTIFICATE-----
MIIBkTCCATagAwIBAgIUJRETkAvtzdid5gYXiIPk9zVDj+EwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJMTI3LjAuMC4xMCAXDTI2MTEyMTE2MjU0N1oYDzIxMjYxMDI4
MTYyNTQ3WjAUMRIwEAYDVQQDDAkxMjcuMC4wLjEwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAATUArPvYe0rq+ICD4fcmOhhxj8jVNR0r9jo83/Q2xB+fP89EBe5DHs5
gj+Op0kutStPiJxIYGtznIHmNobnJNieo2QwYjAdBgNVHQ4EFgQUa/pnZgt53JZt
gHTIQBtALOn0amEwHwYDVR0jBBgwFoAUa/pnZgt53JZtgHTIQBtALOn0amEwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0kAMEYC
IQCOpED96YvmVH8gJvn25yQHh5QmDk5xqy4JMRjjB/gingIhAMYSKmpL6XWx7h6J
adMExr/HeTa9fdcKZptpO/7yq1gY
-----END CERTIFICATE-----`

export interface HttpsFront extends Disposable {
  readonly url: string
  /** What is asked is answered by the server at this URL. */
  to(url: string): void
}

/** A reverse proxy that ends TLS. Its address is known before the server behind it, whose base URL it becomes. */
export function httpsFront(): HttpsFront {
  let behind = ''
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    tls: { key, cert },
    async fetch(request) {
      const { pathname, search } = new URL(request.url)
      const body = request.method === 'POST' || request.method === 'PUT' ? { body: await request.arrayBuffer() } : {}
      const { method, headers, signal } = request
      return fetch(`${behind}${pathname}${search}`, { method, headers, ...body, signal, redirect: 'manual' })
    },
  })
  return {
    url: `https://127.0.0.1:${server.port}`,
    to(url) {
      behind = url
    },
    [Symbol.dispose]: () => void server.stop(true),
  }
}
