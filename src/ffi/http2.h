/*
 * The body of a request that came over HTTP/2, and that nginx streams to an upstream.
 */

#ifndef _NGX_HTTP_COMBINED_UPSTREAMS_HTTP2_H_INCLUDED_
#define _NGX_HTTP_COMBINED_UPSTREAMS_HTTP2_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Whether all that has been read is still there, and nginx can begin to read anew without opening
 * the window of the stream a second time. v2 is nginx's HTTP/2 module.
 */
ngx_uint_t ngx_http_combined_upstreams_http2_is_rereadable(
    ngx_http_request_t *r, const ngx_module_t *v2);

/* gives what has been read back to the stream, as if it had come before anybody asked for it */
ngx_int_t ngx_http_combined_upstreams_http2_unread(ngx_http_request_t *r);


#endif /* _NGX_HTTP_COMBINED_UPSTREAMS_HTTP2_H_INCLUDED_ */
