// Draws the OpenAPI document named by data-openapi.
const place = document.querySelector("[data-openapi]");
window.SwaggerUIBundle({
  domNode: place,
  url: place.dataset.openapi,
  deepLinking: true,
  defaultModelsExpandDepth: -1,
  requestInterceptor(request) {
    request.headers["X-CSRF-Token"] = document.querySelector('meta[name="csrf-token"]').content;
    return request;
  },
});
